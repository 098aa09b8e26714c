/// Verifier compares a pipelined run with one process that trained on the same microbatches.
///
/// "Equal" means every bit, so that a NaN equals itself and 0 does not equal -0. A schedule that
/// adds gradients in another order than one process cannot give the same bits. For it, every loss,
/// weight and buffer must be within kReorderedBound of that process's. A buffer that forwards write
/// in another order is not compared. The sub-command feeds it step by step and once at the end; it
/// does not know how either side computes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/tools/train/report/progress.h"
#include "stagecraft/tools/train/verify/named_state.h"

namespace stagecraft::tools {

/// The bounds of |a - b| / max(1, |b|). Rounding alone changes single precision by 1e-7 a step; a
/// wrong gradient changes a weight by the learning rate.
inline constexpr double kReorderedBound = 1e-4;
/// The bound for a run in a half type whose operators get their samples in other sets, and for one
/// whose weights are of a half type: each result may round the other way.
inline constexpr double kHalfTypeBound = 1e-2;

class Verifier {
 public:
  /// `reordered`: the reason why the schedule's sums differ from one process's, if they do.
  explicit Verifier(const std::optional<std::string>& reordered = std::nullopt,
                    double bound = kReorderedBound);

  /// Compares the losses of the microbatches of one step and their mean.
  void step(std::int64_t step,
            const std::vector<double>& pipeline,
            const std::vector<double>& one_process,
            double pipeline_mean,
            double one_process_mean);

  using StageOf = std::function<std::string(const std::string&)>;
  /// Compares all parameters; `stage_of` names the stage of a parameter for the message.
  void parameters(const NamedTensors& pipeline,
                  const NamedTensors& one_process,
                  const StageOf& stage_of);
  /// Compares all buffers except those in `reordered`.
  void buffers(const NamedTensors& pipeline,
               const NamedTensors& one_process,
               const StageOf& stage_of,
               const std::set<std::string>& reordered = {});

  [[nodiscard]] const VerifyLine& result() const { return result_; }

 private:
  /// Notes a difference of `by`, which is `relative` to the value; infinite if the two cannot be
  /// compared.
  void differ(bool& told, const std::string& where, double by, double relative);
  void compare_losses(const std::string& where, double pipeline, double one_process);
  /// Compares the two sides by name and returns how many it compared; messages call each tensor
  /// `what`.
  std::int64_t tensors(const std::string& what,
                       bool& told,
                       const NamedTensors& pipeline,
                       const NamedTensors& one_process,
                       const StageOf& stage_of);

  VerifyLine result_{.bit_equal = true, .good = true};
  // True if the first difference of each kind was reported: a loss shows when, a tensor shows
  // where.
  bool told_loss_ = false;
  bool told_parameter_ = false;
  bool told_buffer_ = false;
};

}  // namespace stagecraft::tools
