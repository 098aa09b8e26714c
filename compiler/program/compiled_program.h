/// CompiledProgram holds all results of compile, for the layers that lower and run a model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/graph/stage_assignment.h"
#include "stagecraft/compiler/module/module_state.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/program/chunk_borders.h"
#include "stagecraft/compiler/program/cut_report.h"
#include "stagecraft/compiler/program/pass_time.h"
#include "stagecraft/compiler/stage/kept_values.h"
#include "stagecraft/compiler/stage/partition.h"
#include "stagecraft/compiler/stage/recompute.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

struct CompiledProgram {
  Graph graph;
  Partition partition;
  StageGraph stage_graph;
  std::optional<StageGraph> whole_stages;  ///< as schedules list them; absent: as they are
  StageAssignment assignment;
  bool marked = true;  ///< it was cut at the module's markers
  CutReport cut;
  Recompute recompute;
  KeptValues keep;                          ///< ascending outputs
  std::vector<ChunkBorders> chunk_borders;  ///< by stage, of sums in parts; empty without
  int microbatches = 1;
  std::vector<BatchSlice> inputs, labels;  ///< per microbatch
  std::vector<std::string> input_names;    ///< empty for an input without a name
  std::vector<bool> modes;                 ///< Workload::modes at capture
  std::vector<StateName> state_names;      ///< in the module's order
  std::vector<std::string> submodules;     ///< Workload::submodules
  Autocast autocast;                       ///< the caller's autocast state at capture
  /// The program whose evaluation this is (evaluations.h); null for a program that trains.
  std::shared_ptr<const CompiledProgram> evaluates;
  /// For a prediction, the dimension of the rows of each output (output_rows.h).
  std::vector<std::int64_t> row_dimensions;
  std::vector<PassTime> passes;  ///< of compile; empty for a program that was made from another one
};

/// Returns the number of microbatches of the stage that computes the loss. A step's loss is the
/// mean over them.
[[nodiscard]] int losses_of(const CompiledProgram& program);

}  // namespace stagecraft
