/// Runs `stagecraft train` on a model small enough for a test, and reads its --json output.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {

/// Returns the words of a train command on a model of 4 layers, 3 steps, 4 microbatches; `more`
/// comes last.
[[nodiscard]] std::vector<std::string> small_train(const std::vector<std::string>& more);

/// Returns the words, then more.
[[nodiscard]] std::vector<std::string> with(std::vector<std::string> words,
                                            const std::vector<std::string>& more);

/// Runs small_train(more): here, or as a program if its workers are processes. The caller judges a
/// failure.
[[nodiscard]] CommandResult run_train(const std::vector<std::string>& more);

/// Holds the output of a --json run that ended well, by event.
struct TrainOutput {
  std::vector<nlohmann::json> steps;
  nlohmann::json verify;
  nlohmann::json timeline;  ///< planned against measured
  nlohmann::json ranks;     ///< the work and memory of each
  nlohmann::json done;
  std::vector<nlohmann::json> others;

  [[nodiscard]] std::string sha256() const { return done.at("weights_sha256"); }
};

/// Returns the event of a line, without the two fields that every line begins with: it REQUIREs
/// them.
[[nodiscard]] nlohmann::json train_event(const std::string& line);

/// Runs these words, the program first, with --json, where run_train would run them, and REQUIREs
/// that they end with exit code 0.
[[nodiscard]] TrainOutput train_output(std::vector<std::string> words);

/// Runs small_train(more) with --json and REQUIREs that it ends with exit code 0.
[[nodiscard]] TrainOutput train_json(const std::vector<std::string>& more);

}  // namespace stagecraft::tests
