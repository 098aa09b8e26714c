/// TransferWriter emits the instructions that bring tensors to the tasks of a rank list, and send
/// what the tasks make: transfers between ranks, the driver's tensors, results of an evaluation,
/// and the regrouping of tensors for stages of another size of microbatches.
///
/// emit makes one for a list and calls it around each run.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "stagecraft/compiler/lower/emit_input.h"
#include "stagecraft/compiler/lower/list_writer.h"
#include "stagecraft/compiler/lower/task_runs.h"

namespace stagecraft {

class TransferWriter {
 public:
  /// `nodes`: those of the list, in issue order. Views all arguments.
  TransferWriter(const EmitInput& input,
                 const std::vector<int>& nodes,
                 const TaskRuns& runs,
                 StageFacts& facts,
                 ListWriter& list);

  /// Emits what the run needs and has not been emitted yet: the driver's tensors, receives, and
  /// the joining of parts.
  void emit_inputs(const TaskRuns::Run& run, int unit);
  /// Emits the sends of an evaluation's results.
  void emit_results(const TaskRuns::Run& run, int unit);
  /// Emits the sends that stand with their run (TaskRuns::is_in_block).
  void emit_sends(const TaskRuns::Run& run, int unit);
  /// Emits a Send or a Receive, by its node.
  void emit_transfer(int node, int unit);

  [[nodiscard]] bool is_emitted(std::size_t position) const { return emitted_[position]; }
  /// Returns the edge by which an input, a label or a result comes from or goes to the driver.
  [[nodiscard]] EdgeId feed_edge(StageId stage, ValueId value) const {
    return feed_edges_.at({stage, value});
  }

 private:
  void emit_feeds(const TaskRuns::Run& run, int unit);
  void emit_part(const Task& task, const PlanEdge& of, const DagNode& node, const ValueKey& key);
  void emit_joint(const Task& task, EdgeId of, std::vector<ValueKey>& parts);
  [[nodiscard]] ValueKey part_key(const PlanEdge& edge,
                                  const MicrobatchRange& part,
                                  int unit) const;

  const EmitInput& in_;
  const std::vector<int>& nodes_;
  const TaskRuns& runs_;
  StageFacts& facts_;
  ListWriter& list_;
  std::vector<bool> emitted_;  // by position
  std::map<std::pair<StageId, ValueId>, EdgeId> feed_edges_, result_edges_;
};

}  // namespace stagecraft
