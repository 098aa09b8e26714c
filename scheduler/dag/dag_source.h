/// DagSource is the input of build_dag(): the stages of a model, their chunks, and the tensors that
/// cross between them.
///
/// The compiler makes it from a program; bare_source() makes it from a stage graph alone. A value.
/// DSO-1: the chunks of a stage are in the order in which a forward runs them. A chunk reads only
///        earlier chunks of its stage.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// RegionTag is a number that an annotated region of the model has, e.g. EP:1.
using RegionTag = std::pair<std::string, int>;

/// DagChunk is a part of a stage between two borders: of annotations, of recomputation, or of
/// buckets.
struct DagChunk {
  std::vector<RegionTag> regions;  ///< beside the stage's own tag
  std::vector<int> reads;          ///< earlier chunks of the stage
  /// The bytes of the parameters that train here. A parameter of several chunks counts in the first
  /// one, where its gradient is complete. The number is also above 0 if copies of the stage have
  /// other values to make equal after a step.
  std::int64_t parameter_bytes = 0;
  /// The names of its operators, for people; empty if the source does not know them.
  std::vector<std::string> operators = {};
};

/// DagTensor is a value that a stage sends to another in every forward.
struct DagTensor {
  StageId from;
  int from_chunk = 0;      ///< the chunk that makes it
  int gradient_chunk = 0;  ///< the last chunk of its stage that makes or reads it
  StageId to;
  int to_chunk = 0;             ///< the first chunk that reads it
  bool owes_gradient = false;   ///< the reader sends its gradient back
  EdgeId activation, gradient;  ///< names of the two transfers
};

/// DagTie is a set of parameters that several stages use and train. If the schedule has copies of
/// these stages, each copy is a tie with the same name.
struct DagTie {
  std::string name;             ///< of a parameter that no other tie of the model has
  std::vector<StageId> stages;  ///< in the model's order
};

/// DagBucket is a set of parameters whose gradients are summed together, and which are updated
/// together.
struct DagBucket {
  /// the stages that have them: one, or all copies in the schedule
  std::vector<StageId> stages;
  int first_chunk = 0, chunks = 1;  ///< the chunks whose parameters are in it
  std::int64_t bytes = 0;           ///< bytes of one copy
  int parts = 1;                    ///< of a chunk whose weights are divided among so many ranks
  bool lends = false;               ///< its weights are gathered before each task that uses them
  std::string gather_stream = {};   ///< for that; if empty, the usual one

  [[nodiscard]] bool is_divided() const { return parts > 1; }
  [[nodiscard]] bool has(int chunk) const {
    return chunk >= first_chunk && chunk < first_chunk + chunks;
  }
};

struct DagSource {
  StageGraph graph;
  std::vector<std::vector<DagChunk>> chunks;  ///< by stage
  std::vector<DagTensor> tensors;
  std::vector<DagTie> ties;
  /// An evaluation has the buckets of the program that trains, by their numbers there. Each lists
  /// the chunks of the evaluation that use it; these may share buckets.
  std::vector<DagBucket> buckets = {};
};

/// Returns a source of one chunk per stage and one tensor per edge, numbered by edge: its
/// activation has twice the number of the edge, its gradient one more.
[[nodiscard]] DagSource bare_source(const StageGraph& graph);

}  // namespace stagecraft
