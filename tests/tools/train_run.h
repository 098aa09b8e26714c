/// Runs `stagecraft train` on a model small enough for a test, and reads what it said with --json.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {

/// Returns the words of a train command on a model of 4 layers, 3 steps, 4 microbatches; `more`
/// comes last.
[[nodiscard]] std::vector<std::string> small_train(const std::vector<std::string>& more);

/// Runs it. A failure to end well is left to the caller to judge.
[[nodiscard]] CommandResult run_train(const std::vector<std::string>& more);

/// What a --json run that ended well said, by event.
struct TrainOutput {
  std::vector<nlohmann::json> steps;
  nlohmann::json verify;
  nlohmann::json timeline;  ///< planned against measured
  nlohmann::json ranks;     ///< what each did and held
  nlohmann::json done;
  std::vector<nlohmann::json> others;

  [[nodiscard]] std::string sha256() const { return done.at("weights_sha256"); }
};

/// Runs these words, the program first, with --json, and REQUIREs that it ends with exit code 0.
[[nodiscard]] TrainOutput train_output(std::vector<std::string> words);

/// Runs small_train(more) with --json and REQUIREs that it ends with exit code 0.
[[nodiscard]] TrainOutput train_json(const std::vector<std::string>& more);

}  // namespace stagecraft::tests
