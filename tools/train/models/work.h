/// Work: what a run trains: a model, and the batches of its steps. There is one kind for each
/// source of work (models/, file_work.h); the rest of a run is the same for all.
///
/// Made from the options before anything else, and called in the order of the functions below. It
/// may release the model after it was compiled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/module/metric.h"
#include "stagecraft/compiler/module/named_tensor.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/tools/train/job/decide.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

struct WorkBatch {
  Batch inputs, labels;
};

/// The memory of a model and its batches. In double: a size beyond 64 bits must be refused, not
/// taken for a small one. Units: bytes.
struct WorkBytes {
  double parameters = 0.0;  ///< ties count once
  double buffers = 0.0;     ///< where they count
  double on_stages = 0.0;   ///< parameters, ties on each of their stages; 0: not known before
  std::optional<double> optimized;  ///< the part that the optimizer changes; none: not known before
  double description = 0.0;         ///< estimate for modules and operators, without tensors
  double file = 0.0;                ///< contents of the model's file: it may be captured again
  double microbatch = 0.0;          ///< kept by the forward of one, at least; 0: not known before
  double batch = 0.0;               ///< inputs and labels of one step
};

class Work {
 public:
  virtual ~Work() = default;

  /// Returns the options with those that the work settles: microbatches, stages, steps.
  /// Errors: UsageArgument for options that contradict it.
  [[nodiscard]] virtual TrainOptions settled(const TrainOptions& options) const = 0;

  /// Errors: UsageArgument for a number of stages into which the model cannot be cut.
  [[nodiscard]] virtual WorkBytes bytes(const ScheduleChoice& choice) const = 0;

  /// Returns the program, with the weights of --load-weights if given. Called once.
  /// Errors: those of compile, and of load_weights.
  [[nodiscard]] virtual Program compile(const ScheduleChoice& choice) = 0;

  /// Returns the batch of step `step`, counted from 0. Errors: UsageFile if it cannot be read.
  [[nodiscard]] virtual WorkBatch batch(std::int64_t step, const ScheduleChoice& choice) const = 0;

  /// Returns the batch of evaluations: no step trains on it. Requires: the work has one.
  [[nodiscard]] virtual WorkBatch evaluation(const ScheduleChoice& choice) const = 0;

  /// Returns what evaluations measure beside the loss.
  [[nodiscard]] virtual std::vector<Metric> metrics() const { return {}; }

  /// Returns the tokens of a step; none if steps are counted instead.
  [[nodiscard]] virtual std::optional<std::int64_t> tokens(const ScheduleChoice& choice) const = 0;

  /// Returns trained parameters and buffers under all names of the model: also under further names
  /// of ties, and with buffers that no operator uses.
  [[nodiscard]] virtual std::vector<NamedTensor> all_names(std::vector<NamedTensor> trained) const {
    return trained;
  }
};

/// Compiles the work for operators of that precision: capture records for each operator under which
/// autocast it ran. Errors: those of Work::compile.
[[nodiscard]] Program compile_in(Precision precision, Work& work, const ScheduleChoice& choice);

/// Opens the work that the options name. `most`: bytes that it may take.
/// Errors: UsageFile for data that cannot be read; DeviceOutOfMemory for data that is too large.
[[nodiscard]] std::unique_ptr<Work> open_work(const TrainOptions& options, double most);

}  // namespace stagecraft::tools
