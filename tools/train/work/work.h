/// Work is the task of a run: a model, and the batches of its steps. There is one kind for each
/// source of work (the models of this folder, file_work.h); the rest of a run is the same for all.
///
/// It is opened from a WorkRequest (catalog/open_work.h) before anything else. It may release the
/// model when it is compiled. One thread uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/data/batch_source.h"
#include "stagecraft/actors/executor/step/loss_scale.h"
#include "stagecraft/compiler/data/data_request.h"
#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/module/metric.h"
#include "stagecraft/compiler/module/named_tensor.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/tools/train/work/work_shape.h"

namespace stagecraft::tools {

/// Precision is the type in which operators compute; weights and optimizer keep the model's own
/// types.
enum class Precision { Float32, BFloat16, Float16 };

/// Returns the words of --precision.
[[nodiscard]] const std::vector<std::pair<std::string, Precision>>& precision_words();
[[nodiscard]] std::string word_of(Precision precision);

struct WorkBatch {
  Batch inputs, labels;
};

/// OneProcessBytes is the memory of --verify beside the weights, gradients and optimizer's states
/// of each of its trainings in one process. Units: bytes.
struct OneProcessBytes {
  int trainings = 1;        ///< at least
  double sums = 0.0;        ///< partial sums of the one that adds in the order of the ranks
  double microbatch = 0.0;  ///< activations and gradients of one, while it is trained on
};

/// WorkBytes is the memory of a model and its batches. It is in double: a size beyond 64 bits must
/// be refused, and not taken for a small one. Units: bytes.
struct WorkBytes {
  double parameters = 0.0;  ///< ties count once
  double buffers = 0.0;     ///< on the stages where they count
  double on_stages = 0.0;   ///< parameters, ties on each of their stages; 0: not known before
  double experts = 0.0;     ///< the part of parameters in regions EP
  double region = 0.0;      ///< the part of experts in the largest of these regions
  /// One of the optimizer's states, of all parameters that it changes; none: not known before.
  std::optional<double> optimized;
  double masters = 0.0;  ///< of parameters in half types; 0: none, or not known before
  /// Weights, gradients and optimizer's states of all ranks; none: not known before.
  std::optional<double> on_ranks;
  double mirrors = 0.0;         ///< copies of states in the memory of other ranks; 0: none
  OneProcessBytes one_process;  ///< as far as it is known
  double description = 0.0;     ///< estimate for modules and operators, without tensors
  double file = 0.0;            ///< contents of the model's file: it may be captured again
  double microbatch = 0.0;      ///< kept by the forward of one, at least; 0: not known before
  double batch = 0.0;           ///< inputs and labels of one step
};

/// FixedData describes data whose batches are fixed: a folder of microbatches.
struct FixedData {
  std::string folder;
  int microbatches = 1;      ///< of a batch
  std::int64_t batches = 0;  ///< in all
};

/// SampleData describes data of which a run takes samples: a folder of shards.
struct SampleData {
  std::string folder;
  std::int64_t samples = 0;         ///< of an epoch
  std::int64_t held_out = 0;        ///< samples on which no step trains
  std::vector<ModelTensor> inputs;  ///< of the model, as its file states them (DataRequest::inputs)

  /// Returns the size of microbatches that the model's file fixes, if it does.
  [[nodiscard]] std::optional<std::int64_t> microbatch_size() const {
    return stated_microbatch_size(inputs);
  }
  /// Returns the batches of an epoch.
  [[nodiscard]] std::int64_t batches(const WorkShape& shape) const {
    return samples / shape.microbatch_size / shape.microbatches;
  }
};

class Work {
 public:
  virtual ~Work() = default;

  /// Returns the data that fix the batches; nothing if the work draws any number of them.
  [[nodiscard]] virtual std::optional<FixedData> fixed_data() const { return std::nullopt; }

  /// Returns the data of which the batches are made; nothing if they are fixed, or not in a folder.
  [[nodiscard]] virtual std::optional<SampleData> sample_data() const { return std::nullopt; }

  /// Returns the memory. Errors: UsageArgument for a number of stages into which the model cannot
  /// be cut.
  [[nodiscard]] virtual WorkBytes bytes(const WorkShape& shape) const = 0;

  /// Returns the program, with the weights of the request if there are any.
  /// Errors: those of compile, and of load_weights.
  [[nodiscard]] virtual Program compile(const WorkShape& shape) = 0;

  /// Returns the batch of step `step`, counted from 0. Errors: UsageFile if it cannot be read.
  [[nodiscard]] virtual WorkBatch batch(std::int64_t step, const WorkShape& shape) const = 0;

  /// Returns the text of an error in a microbatch of step `step`, counted from 0; with the files to
  /// look at, if an operator found a number in them too large.
  [[nodiscard]] virtual std::string located(const std::string& text,
                                            std::int64_t /*step*/,
                                            int /*microbatch*/,
                                            const WorkShape& /*shape*/) const {
    return text;
  }

  /// Returns the number of batches of an evaluation.
  [[nodiscard]] virtual std::int64_t evaluation_batches(const WorkShape& /*shape*/) const {
    return 1;
  }
  /// Returns one of them, counted from 0. Requires: the request asks for evaluations.
  /// Errors: UsageFile if it cannot be read.
  [[nodiscard]] virtual WorkBatch evaluation(std::int64_t number, const WorkShape& shape) const = 0;

  /// Returns the metrics that evaluations measure in addition to the loss.
  [[nodiscard]] virtual std::vector<Metric> metrics() const { return {}; }

  /// Returns the tokens of a step; none if steps are counted instead.
  [[nodiscard]] virtual std::optional<std::int64_t> tokens(const WorkShape& /*shape*/) const {
    return std::nullopt;
  }

  /// Returns trained parameters and buffers under all names of the model: also under further names
  /// of ties, and with buffers that no operator uses.
  [[nodiscard]] virtual std::vector<NamedTensor> all_names(std::vector<NamedTensor> trained) const {
    return trained;
  }
};

/// Returns a source of the batches of an evaluation. Views the work.
[[nodiscard]] std::unique_ptr<BatchSource> evaluation_source(const Work& work,
                                                             const WorkShape& shape);

/// Returns the autocast in which operators of that precision run.
[[nodiscard]] Autocast autocast_of(Precision precision);

/// Returns the scaling with which a run of that precision trains.
[[nodiscard]] std::optional<LossScaling> loss_scaling_of(Precision precision);

/// Compiles the work for operators of that precision: capture records the autocast under which each
/// operator ran. Errors: those of Work::compile.
[[nodiscard]] Program compile_in(Precision precision, Work& work, const WorkShape& shape);

}  // namespace stagecraft::tools
