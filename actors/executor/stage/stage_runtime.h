/// StageRuntime is one stage with everything that a rank, or the reference, needs to run it: its
/// chunks, parameters and buffers.
///
/// It is confined to the thread that trains it.
/// CB-1: borders of chunks, and recomputing them, change no bit. Values cross them unchanged, and a
///       chunk's backward adds to the sums of later chunks in the engine's order, that of the
///       operators.
/// CB-2: a chunk is replayed once, when the first half of its backward that has a gradient begins,
///       from the inputs, buffers and random numbers of its forward. The replay writes no buffer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage/saved.h"
#include "stagecraft/actors/executor/stage/stage_buckets.h"
#include "stagecraft/compiler/stage/interpreter.h"
#include "stagecraft/compiler/stage/stage_program.h"
#include "stagecraft/scheduler/model/cell.h"

namespace stagecraft {

/// StageForward holds the results of the forward of one microbatch. Outputs and loss carry no
/// graph.
struct StageForward {
  std::vector<at::Tensor> outputs;  ///< of StageProgram::outputs; undefined: made by other chunks
  at::Tensor loss;                  ///< undefined if another stage or chunk computes it
};

/// StageGradients holds the results of the backward of one microbatch.
struct StageGradients {
  std::vector<at::Tensor> inputs;      ///< per input that owes one and is complete; contiguous
  std::vector<at::Tensor> parameters;  ///< per trained parameter; undefined if none arrives
};

class StageRuntime {
 public:
  /// BoundChunk is a chunk with all lookups of a run done in advance.
  struct BoundChunk {
    /// Source is the origin of an input: the stage's inputs, or the outputs of an earlier chunk.
    struct Source {
      std::optional<std::size_t> chunk;
      std::size_t position = 0;
    };
    ChunkInterpreter interpreter;
    std::vector<Source> inputs;
    std::vector<std::optional<std::size_t>> outputs;  ///< the stage's output, if it is one
    /// Outputs of this and earlier chunks that no later one reads: an evaluation drops them.
    std::vector<Source> last_reads;
    std::vector<std::size_t> parameters;  ///< that it reads, by number
    bool recompute = false;
    bool divided = false;                               ///< its bucket has a part of its parameters
    std::vector<std::size_t> written_buffers;           ///< those of the stage that it changes
    std::vector<torch::autograd::Edge> gradient_edges;  ///< of the parameters
    /// The parameters and inputs of the stage whose gradients are complete here. The first chunk
    /// has those that no chunk reads.
    std::vector<std::size_t> completes, completes_inputs;
  };

  /// Makes a stage with zero weights and buffers, to be loaded, and with the optimizer state of the
  /// first step. Requires: `program` outlives the runtime.
  StageRuntime(const StageProgram& program,
               const Optimizer& optimizer,
               const BucketOptions& options = {},
               const std::vector<BucketCut>& bucket_cuts = {});

  /// Makes the same stage from another capture, for another shape or evaluation. It runs on the
  /// parameters and buffers of `of`, which also keeps gradients and optimizer state.
  /// Requires: the two fit (misfit, misfit_of_evaluation, other_shape.h).
  StageRuntime(const StageProgram& shape, const StageRuntime& of);

  /// Copies the tensors of `state` that belong to this stage; its other tensors stay. A master or
  /// an average that is missing begins as its weight.
  void load(const std::vector<NamedTensor>& state);

  /// Returns the range of all chunks.
  [[nodiscard]] ChunkRange whole() const { return {0, static_cast<std::int32_t>(chunks.size())}; }

  /// Runs the forward of one microbatch over some chunks. `inputs`: in the order of
  /// StageProgram::inputs, undefined for those that these chunks do not read; their graphs do not
  /// change. `saved`: empty before the first chunk, then as the chunks before have left it.
  /// `watch`: is called for the operators of each chunk.
  [[nodiscard]] StageForward forward(const ChunkRange& range,
                                     const std::vector<at::Tensor>& inputs,
                                     bool keeps_graphs,
                                     const RandomKey& key,
                                     SavedStage& saved,
                                     ChunkWatch* watch = nullptr) const;

  /// Runs a backward: B, or one of its halves, over some chunks in reverse. The input half leaves
  /// `parameters` empty, and the weight half after it leaves `inputs` empty; a weight half that
  /// comes first does all. `output_gradients`: per output; undefined if no stage sends one, or with
  /// another range. `accumulated`: the weight with which the gradients of `parameters` are
  /// accumulated next. The buckets take each as soon as it is complete, and it comes back undefined
  /// (StageBuckets::take). `loss_scale`: RunningStep::loss_factor.
  [[nodiscard]] StageGradients backward(CellKind kind,
                                        const ChunkRange& range,
                                        SavedStage& saved,
                                        const std::vector<at::Tensor>& output_gradients,
                                        std::optional<double> accumulated = std::nullopt,
                                        double loss_scale = 1.0) const;

  /// Returns the values of `saved` that an exchange of samples moves (P-13): of a divided chunk the
  /// inputs or outputs, or their gradients. Undefined ones do not move.
  [[nodiscard]] std::vector<at::Tensor>& exchanged(const Instruction& exchange,
                                                   SavedStage& saved) const;
  /// Uses the values once they have been exchanged: adds gradients of inputs to those of other
  /// readers.
  void take_exchanged(const Instruction& exchange, SavedStage& saved) const;

  /// Returns the trained parameters (by number) whose gradients are complete in these chunks.
  [[nodiscard]] std::vector<std::size_t> completed_in(const ChunkRange& range) const;

  /// Appends weights, optimizer state and buffers under their names in checkpoints; the living
  /// tensors.
  void append_state(std::vector<NamedTensor>& all) const;

  /// Returns whether the tensor lies in the memory of a parameter or buffer, to which steps write.
  [[nodiscard]] bool shares_state(const at::Tensor& tensor) const;

  /// Returns the name of the model's parameter `position`, if this stage has it.
  [[nodiscard]] std::optional<std::string> name_of_parameter(std::int64_t position) const;

  const StageProgram* program;
  c10::Device device;  ///< of all tensors
  StageBuckets buckets;
  StageState state;
  std::vector<BoundChunk> chunks;

 private:
  [[nodiscard]] BoundChunk bound(const Chunk& chunk) const;
  void find_last_reads();
  [[nodiscard]] std::vector<at::Tensor> weight_half(const ChunkRange& range,
                                                    SavedStage& saved,
                                                    std::optional<double> accumulated) const;
  [[nodiscard]] std::vector<at::Tensor> finished_parameters(const ChunkRange& range,
                                                            SavedStage& saved) const;
  [[nodiscard]] std::vector<at::Tensor> finished_inputs(const ChunkRange& range,
                                                        SavedStage& saved) const;
  void replay(const BoundChunk& chunk, Saved& saved) const;
  void keep_lent_weights_out_of(std::vector<at::Tensor>& outputs) const;
};

/// Returns the weights and buffers of a program as it was compiled, under their names in
/// checkpoints.
[[nodiscard]] std::vector<NamedTensor> initial_state(const Graph& graph);

}  // namespace stagecraft
