#include "stagecraft/tools/train/job/rank_memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include <c10/util/accumulate.h>

#include "stagecraft/actors/executor/setup/bucket_cut.h"
#include "stagecraft/actors/executor/stage/flat_buffers.h"
#include "stagecraft/actors/executor/stage/shard_layout.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/planned_bytes.h"
#include "stagecraft/tools/train/options/update_rule.h"

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kAlignment = 64;

/// Tensors holds the elements of a bucket's tensors, by flat buffer.
using Tensors = std::map<FlatKind, std::vector<std::int64_t>>;

/// Returns the bytes that a rank has of the tensors in a flat buffer of this type.
std::int64_t bytes_in(c10::ScalarType type,
                      const std::vector<std::int64_t>& elements,
                      std::int32_t shards) {
  const auto width = static_cast<std::int64_t>(c10::elementSize(type));
  return shard_layout(elements, kAlignment / width, shards).shard * width;
}

/// Returns the bytes that a rank has of the tensors in flat buffers.
std::int64_t bytes_in(const Tensors& tensors, std::int32_t shards) {
  std::int64_t bytes = 0;
  for (const auto& [kind, elements] : tensors) {
    bytes += bytes_in(kind.dtype, elements, shards);
  }
  return bytes;
}

class RankSum {
 public:
  explicit RankSum(const OptimizerOptions& optimizer)
      : optimizer_(optimizer), groups_(make_groups(optimizer)), states_(kept_tensors(optimizer)) {}

  void add(const StageProgram& stage, const std::vector<BucketCut>& cuts) {
    std::vector<Tensors> trained(cuts.size()), optimized(cuts.size());
    const std::vector<int> completing = completing_chunks(stage);
    std::size_t number = 0;
    for (const StageParameter& parameter : stage.parameters) {
      const Value& facts = stage.at(parameter.value);
      if (!parameter.trained) {
        memory_.weights += bytes_of(facts);
        continue;
      }
      const int chunk = completing[number++];
      const auto bucket = static_cast<std::size_t>(
          std::ranges::find_if(cuts, [&](const BucketCut& cut) { return cut.chunks.has(chunk); }) -
          cuts.begin());
      if (bucket == cuts.size()) {
        memory_.weights += bytes_of(facts);
        continue;
      }
      const std::int64_t elements = c10::multiply_integers(facts.sizes) / cuts[bucket].parts;
      const FlatKind kind{
          .dtype = facts.dtype,
          .alone = cuts[bucket].lies_alone(parameter.name) ? parameter.name : std::string()};
      trained[bucket][kind].push_back(elements);
      if (!rule_of(groups_, DecayOn::All, Optimizer(), parameter.name, 0).frozen) {
        optimized[bucket][kind].push_back(elements);
      }
    }
    for (std::size_t b = 0; b < cuts.size(); ++b) {
      add(cuts[b], trained[b], optimized[b]);
    }
  }

  [[nodiscard]] RankMemory end() {
    std::ranges::sort(lent_, std::greater<>());
    for (std::size_t i = 0; i < std::min<std::size_t>(2, lent_.size()); ++i) {
      memory_.borrowed += lent_[i];
    }
    memory_.borrows_at_end = lent_.empty();
    return memory_;
  }

 private:
  void add(const BucketCut& cut, const Tensors& trained, const Tensors& optimized) {
    const std::int64_t whole = bytes_in(trained, 1);
    const std::int64_t own = bytes_in(trained, cut.shards);
    memory_.weights += cut.sharing >= Sharing::Weights ? own : whole;
    memory_.gradients += cut.sharing >= Sharing::Gradients ? own : whole;
    for (const auto& [kind, elements] : optimized) {
      const c10::ScalarType kept = kept_type(optimizer_, kind.dtype);
      memory_.states +=
          (states_ + (kept != kind.dtype ? 1 : 0)) * bytes_in(kept, elements, cut.shards);
    }
    if (cut.sharing >= Sharing::Gradients) {
      lent_.push_back(own * cut.shards * (cut.sharing >= Sharing::Weights ? 2 : 1));
    } else if (cut.sharing == Sharing::States) {
      memory_.borrowed += own;
    }
  }

  const OptimizerOptions& optimizer_;
  const std::vector<ParameterGroup> groups_;
  const std::int64_t states_;
  RankMemory memory_;
  std::vector<std::int64_t> lent_;  // by bucket that has memory for some time only
};

}  // namespace

std::vector<RankMemory> memory_of_ranks(const Execution& execution,
                                        const OptimizerOptions& optimizer) {
  const Plan& plan = *execution.plan;
  const CompiledProgram& program = execution.sized.compiled();
  std::vector<std::int64_t> activations;  // by list
  for (const RankList& list : plan.lists) {
    activations.push_back(peak_activation_bytes(program, plan.tables, list));
  }
  std::vector<RankMemory> all;
  for (const RankPlan& rank : plan.ranks) {
    RankSum sum(optimizer);
    const std::vector<StageId>& stages = plan.list_of(rank.rank).stages;
    for (const StageId stage : stages) {
      sum.add(program.partition.stages[plan.tables.stages[stage.index()].program.index()],
              bucket_cuts_of(plan.tables, stage, rank.rank));
    }
    all.push_back(sum.end());
    all.back().borrows_at_end &= stages.size() == 1;
    all.back().activations = activations[static_cast<std::size_t>(rank.list)];
  }
  return all;
}

}  // namespace stagecraft::tools
