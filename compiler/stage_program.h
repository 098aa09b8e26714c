/// StageProgram: what one stage computes for one microbatch, as data.
///
/// Made by partition, run by the StageInterpreter. Values keep the ids of the whole graph.
///
/// SP-1: inputs are made contiguous by their producer, so every transport hands over the same
///      strides.
/// SP-2: a parameter belongs to exactly one stage program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/compiler/graph.h"

namespace stagecraft {

struct StageInput {
  enum class Source : std::uint8_t { Model, Label, Stage };
  Source source = Source::Model;
  int position = 0;  ///< which model input or label; unused for Source::Stage
  ValueId value;
  StageId from;                ///< the producing stage, for Source::Stage
  bool owes_gradient = false;  ///< this stage sends the value's gradient back
};

/// A value that other stages read.
struct StageOutput {
  ValueId value;
  std::vector<StageId> consumers;  ///< in the order in which the stages are created, earliest first
  std::vector<bool> gradient_from;  ///< per consumer: it sends a gradient back
};

struct StageProgram {
  StageId id;
  std::string name;
  int replica = 0;  ///< which copy of the pipeline it belongs to
  std::vector<Node> nodes;
  std::vector<StageInput> inputs;
  std::vector<StageOutput> outputs;
  std::vector<int> parameters;  ///< positions in Graph::parameters, ascending
  std::vector<int> buffers;
  std::vector<int> constants;
  ValueId loss = kNoValue;  ///< where this stage computes it
  /// Per parameter of this stage: a gradient reaches it.
  std::vector<bool> trained;
  // Measured on one microbatch when compiled, in bytes.
  std::int64_t saved_bytes = 0;      ///< kept from forward until backward
  std::int64_t transient_bytes = 0;  ///< forward's peak above what it keeps
};

}  // namespace stagecraft
