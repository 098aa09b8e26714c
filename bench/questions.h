/// questions lists the questions that stagecraft_bench can answer. Each has a file of its own,
/// which declares its options and prints its figures with the hardware.
#pragma once

#include <span>
#include <string_view>

namespace stagecraft::bench {

struct Question {
  std::string_view name;     ///< of its file, and the first word of the command line
  std::string_view summary;  ///< the question itself
  /// Gets the command line from the name on. Returns the exit status.
  int (*run)(int argc, char** argv);
};

/// Returns all questions, by folder.
[[nodiscard]] std::span<const Question> questions();

}  // namespace stagecraft::bench
