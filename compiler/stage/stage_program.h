/// StageProgram is the computation of one stage for one microbatch, as self-contained data: nothing
/// in it points into the graph of the whole model.
///
/// partition makes it. The executor runs it, and so does compile, which checks and measures. It is
/// a row of chunks, one unless it was cut (chunks.h): autograd ends at their borders, and a
/// backward runs over them in reverse. Some chunks are recomputed (recompute.h). Values keep the
/// ids of the whole graph. Weights are not part of it: it holds their names and shapes.
///
/// SP-1: a value that crosses is made contiguous by its producer, in the order of memory
///       (memory_order.h), so every transport delivers the same strides, and the value has its
///       order at both ends.
/// SP-2: every stage program that uses a parameter has it; one of them counts it. If it trains, it
///       trains in all of them, even if the gradient reaches it in only one
///       (compiler/program/ties.h).
/// SP-3: every value that its operators, inputs and outputs name is in `values`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

struct StageInput {
  enum class Source : std::uint8_t { Model, Label, Stage };
  Source source = Source::Model;
  int position = 0;  ///< the number of the model input or label; unused for Source::Stage
  ValueId value;
  StageId from;                ///< the producing stage, for Source::Stage
  bool owes_gradient = false;  ///< this stage sends the value's gradient back
};

/// StageOutput is a value that other stages read.
struct StageOutput {
  ValueId value;
  std::vector<StageId> consumers;   ///< in the order of their creation, earliest first
  std::vector<bool> gradient_from;  ///< per consumer: it sends a gradient back
  /// The numbers that it has among the module's outputs, if training steps leave these on the rank
  /// (kept_values.h); ascending, each once.
  std::vector<std::int32_t> kept;
};

struct StageParameter {
  std::string name;
  ValueId value;
  int position = 0;      ///< in the model
  bool trained = false;  ///< a gradient reaches it, here or in another stage
  bool counted = true;   ///< in the gradient's norm; true in the first stage that uses it
};

struct StageBuffer {
  std::string name;
  ValueId value;
  int position = 0;      ///< in the model
  bool written = false;  ///< by a forward: running statistics, counters
  std::vector<std::int64_t> strides;
};

struct StageConstant {
  ValueId value;  ///< of a parameter or buffer: evaluations.h, EV-3
  at::Tensor tensor;
};

/// Chunk is a part of a stage between two borders of autograd.
struct Chunk {
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;   ///< inputs of the stage and values of earlier chunks
  std::vector<ValueId> outputs;  ///< values that later chunks or other stages read
  bool recompute = false;        ///< its forward keeps only its inputs, and runs again
  /// The ranks of its stage divide its parameters in dimension 0, and it runs on any number of rows
  /// in the first two dimensions of its inputs (check_divided.h).
  bool divided = false;
  std::int64_t replayed_bytes = 0;  ///< bytes that the replay leaves for the backward, as measured
};

struct StageProgram {
  StageId id;
  std::string name;
  std::vector<Chunk> chunks;
  std::vector<StageInput> inputs;
  std::vector<StageOutput> outputs;
  std::vector<StageParameter> parameters;  ///< in the model's order
  std::vector<StageBuffer> buffers;        ///< likewise
  std::vector<StageConstant> constants;
  std::map<ValueId, Value> values;      ///< `hooks` counts the attachments below
  std::vector<Attachment> attachments;  ///< valid in this process alone, like the attachments that
                                        ///< nodes call by number
  ValueId loss = kNoValue;              ///< set if this stage computes it
  bool keeps_loss = false;              ///< training steps leave it on the rank
  // Measured on one microbatch when compiled, in bytes.
  std::int64_t saved_bytes = 0;      ///< kept from forward until backward
  std::int64_t transient_bytes = 0;  ///< forward's peak above what it keeps

  [[nodiscard]] const Value& at(ValueId value) const { return values.at(value); }
  [[nodiscard]] bool trains() const;
  [[nodiscard]] std::size_t operator_count() const;
  [[nodiscard]] bool recomputes() const;
  /// Return the bytes that recomputing holds: for one chunk after the other, as in a whole
  /// backward, and for all chunks, as from the backward's input half to its weight half.
  [[nodiscard]] std::int64_t largest_replay() const;
  [[nodiscard]] std::int64_t replayed_bytes() const;
};

/// Returns, for each parameter that trains, the first chunk that reads it: there a backward
/// completes its gradient. 0 for a parameter that no chunk reads.
[[nodiscard]] std::vector<int> completing_chunks(const StageProgram& stage);

/// Returns the name of a parameter whose gradient is complete in the chunks [first, end), and that
/// another chunk reads; empty if there is none.
[[nodiscard]] std::string read_beyond(const StageProgram& stage, int first, int end);
/// Returns whether an operator of the chunk reads the value, which may be a parameter.
[[nodiscard]] bool uses(const Chunk& chunk, ValueId value);
/// Returns the first chunk that reads an input of the stage; 0 if none does.
[[nodiscard]] int first_reader(const StageProgram& stage, ValueId input);
/// Returns the chunk that makes an output of the stage: the last that passes it on.
[[nodiscard]] int maker_of(const StageProgram& stage, ValueId output);
/// Returns the last chunk that makes or reads an output of the stage: a backward begins there with
/// the gradients that other stages send for it.
[[nodiscard]] int last_user(const StageProgram& stage, ValueId output);

/// Returns the bytes of a stage's parameters.
[[nodiscard]] std::int64_t weight_bytes(const StageProgram& stage);

template <class V>
decltype(auto) visit_fields(StageInput& m, V&& v) {
  return v(m.source, m.position, m.value, m.from, m.owes_gradient);
}
template <class V>
decltype(auto) visit_fields(StageOutput& m, V&& v) {
  return v(m.value, m.consumers, m.gradient_from, m.kept);
}
template <class V>
decltype(auto) visit_fields(StageParameter& m, V&& v) {
  return v(m.name, m.value, m.position, m.trained, m.counted);
}
template <class V>
decltype(auto) visit_fields(StageBuffer& m, V&& v) {
  return v(m.name, m.value, m.position, m.written, m.strides);
}
template <class V>
decltype(auto) visit_fields(StageConstant& m, V&& v) {
  return v(m.value, m.tensor);
}
template <class V>
decltype(auto) visit_fields(Chunk& m, V&& v) {
  return v(m.nodes, m.inputs, m.outputs, m.recompute, m.divided, m.replayed_bytes);
}
template <class V>
decltype(auto) visit_fields(StageProgram& m, V&& v) {
  return v(m.id,
           m.name,
           m.chunks,
           m.inputs,
           m.outputs,
           m.parameters,
           m.buffers,
           m.constants,
           m.values,
           m.attachments,
           m.loss,
           m.keeps_loss,
           m.saved_bytes,
           m.transient_bytes);
}

}  // namespace stagecraft
