/// MemoryBill lists all memory that a training run will hold, line by line.
///
/// It is made twice from the same options: before the model is built, with a lower bound of a
/// step's activations, and after it was compiled, with those of the plan. Both are compared with
/// the limits from before either, so that nothing is counted twice.
/// MB-1: the lines of a run add up: memory that a step frees stays in the pools of its ranks.
///       Compiling comes before the run and is compared by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/train/decide/choice.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

struct MemoryLine {
  enum class Time : std::uint8_t {
    Always,     ///< from the moment the model is built
    Compiling,  ///< while it is compiled
    Run,        ///< from the start of the workers
    Step,       ///< in every step
    State,      ///< while a checkpoint is loaded or saved, and when weights are hashed at the end
  };
  Time time = Time::Always;
  std::string what;
  double bytes = 0.0;
  bool on_gpus = false;  ///< not in the machine's memory
};

class MemoryBill {
 public:
  /// `activations`: of all ranks in a step, at their peaks or at least.
  MemoryBill(const TrainOptions& options,
             const Choice& choice,
             const WorkBytes& work,
             double activations);

  [[nodiscard]] const std::vector<MemoryLine>& lines() const { return lines_; }
  /// Return the most of the machine's memory that is held at once until the model is compiled, and
  /// in the whole run.
  [[nodiscard]] double to_compile() const;
  [[nodiscard]] double to_run() const;
  /// Returns the most that all GPUs hold at once.
  [[nodiscard]] double on_gpus() const;
  /// Returns whether the limits leave as much.
  [[nodiscard]] bool fits(const std::vector<MemoryLimit>& limits) const;

  /// Returns a table: names, bytes, and what `limits` leave.
  [[nodiscard]] std::string text(const std::vector<MemoryLimit>& limits) const;
  [[nodiscard]] nlohmann::ordered_json json(const std::vector<MemoryLimit>& limits) const;

 private:
  [[nodiscard]] double sum(MemoryLine::Time time, bool on_gpus = false) const;

  std::vector<MemoryLine> lines_;
};

}  // namespace stagecraft::tools
