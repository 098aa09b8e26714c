/// CompiledProgram: everything compile found out about a model, for the layers that lower and run
/// it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/compiler/cut/cut_report.h"
#include "stagecraft/compiler/cut/stage_assignment.h"
#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/module_state.h"
#include "stagecraft/compiler/partition.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/compiler/recompute.h"
#include "stagecraft/compiler/split_batch.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

struct CompiledProgram {
  Graph graph;
  Partition partition;
  StageGraph stage_graph;
  StageAssignment assignment;
  bool marked = true;  ///< it was cut at the module's markers
  CutReport cut;
  Recompute recompute;
  int microbatches = 1;
  std::vector<BatchSlice> inputs, labels;  ///< per microbatch
  std::vector<std::string> input_names;    ///< empty for one that has none
  std::vector<bool> modes;                 ///< Workload::modes, when it was captured
  std::vector<StateName> state_names;      ///< as the module has them
  std::vector<std::string> submodules;     ///< Workload::submodules
  Autocast autocast;                       ///< likewise, the caller's
  /// What this is an evaluation of (evaluations.h); null for a program that trains.
  std::shared_ptr<const CompiledProgram> evaluates;
  /// Of a prediction, by output: output_rows.h.
  std::vector<std::int64_t> row_dimensions;
};

/// Microbatches of the stage that computes the loss: a step's loss is the mean over them.
[[nodiscard]] int losses_of(const CompiledProgram& program);

/// Bytes of one microbatch of a value.
[[nodiscard]] std::int64_t bytes_of(const Value& value);

}  // namespace stagecraft
