/// Work: what a run trains: a model, and the batches of its steps. One kind for each source of work
/// (models/, file_work.h); all behind it is one road.
///
/// Made from the options before anything else, and asked in the order of the functions below. It
/// may let go of the model once it has been compiled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/metric.h"
#include "stagecraft/compiler/named_tensor.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/tools/train/options.h"
#include "stagecraft/tools/train/schedule_choice.h"

namespace stagecraft::tools {

struct WorkBatch {
  Batch inputs, labels;
};

/// What a model and its batches take. In double: what does not fit into 64 bits is to be refused,
/// not to be taken for something small. Units: bytes.
struct WorkBytes {
  double parameters = 0.0;  ///< ties once
  double buffers = 0.0;     ///< where they count
  double on_stages = 0.0;   ///< parameters, ties on each of their stages; 0: not known before
  std::optional<double> optimized;  ///< of these, what the optimizer changes; none: likewise
  double description = 0.0;  ///< about what modules and operators take, whatever their tensors
  double file = 0.0;         ///< what the model's file holds: it may be captured once more
  double microbatch = 0.0;   ///< what the forward of one keeps, at the least; 0: not known before
  double batch = 0.0;        ///< inputs and labels of one step
};

class Work {
 public:
  virtual ~Work() = default;

  /// The options with what the work itself settles: microbatches, stages, steps.
  /// Errors: UsageArgument for options that contradict it.
  [[nodiscard]] virtual TrainOptions settled(const TrainOptions& options) const = 0;

  /// Errors: UsageArgument for stages that the model cannot be cut into.
  [[nodiscard]] virtual WorkBytes bytes(const ScheduleChoice& choice) const = 0;

  /// The program, with the weights of --load-weights where they are asked for. Called once.
  /// Errors: those of compile, and of load_weights.
  [[nodiscard]] virtual Program compile(const ScheduleChoice& choice) = 0;

  /// What step `step` trains on, counted from 0. Errors: UsageFile where it cannot be read.
  [[nodiscard]] virtual WorkBatch batch(std::int64_t step, const ScheduleChoice& choice) const = 0;

  /// What evaluations read: no step trains on it. Requires: the work has such a batch.
  [[nodiscard]] virtual WorkBatch evaluation(const ScheduleChoice& choice) const = 0;

  /// What evaluations measure beside the loss.
  [[nodiscard]] virtual std::vector<Metric> metrics() const { return {}; }

  /// Tokens of a step; none where steps are what is counted.
  [[nodiscard]] virtual std::optional<std::int64_t> tokens(const ScheduleChoice& choice) const = 0;

  /// Trained parameters and buffers as the model names them all: also under further names of ties,
  /// and with buffers that no operator uses.
  [[nodiscard]] virtual std::vector<NamedTensor> all_names(std::vector<NamedTensor> trained) const {
    return trained;
  }
};

/// Compiles it for operators of that precision: capture records for each under which
/// autocast it ran. Errors: those of Work::compile.
[[nodiscard]] Program compile_in(Precision precision, Work& work, const ScheduleChoice& choice);

/// The work that the options name. `most`: bytes that it may take.
/// Errors: UsageFile for what cannot be read; DeviceOutOfMemory for what is too large.
[[nodiscard]] std::unique_ptr<Work> open_work(const TrainOptions& options, double most);

}  // namespace stagecraft::tools
