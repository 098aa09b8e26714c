/// runtime_words lists the sub-commands of `stagecraft` in its runtime program, and their help
/// texts.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace stagecraft::tools {

struct RuntimeWord {
  std::string_view word;
  std::string_view about;
};

inline constexpr std::array kRuntimeWords{
    RuntimeWord{"train", "train a model as a pipeline"},
    RuntimeWord{"eval", "print the loss of a model on data"},
    RuntimeWord{"predict", "write the outputs of a model file for data"},
    RuntimeWord{"import",
                "show a model file: its contents, unsupported parts, and places to cut it"},
    RuntimeWord{"profile", "measure the costs of a model's operators and transfers, for planners"},
    RuntimeWord{"doctor", "check this machine and other hosts for common problems"},
    RuntimeWord{"launch", "run a program with workers on many hosts, over ssh or in a Slurm step"},
    RuntimeWord{"worker", "work for a cluster: run the stages that its driver sends"},
};

[[nodiscard]] constexpr bool is_runtime_word(std::string_view word) {
  return std::ranges::find(kRuntimeWords, word, &RuntimeWord::word) != kRuntimeWords.end();
}

/// Returns the help text. Requires: is_runtime_word(word).
[[nodiscard]] constexpr std::string_view about(std::string_view word) {
  return std::ranges::find(kRuntimeWords, word, &RuntimeWord::word)->about;
}

}  // namespace stagecraft::tools
