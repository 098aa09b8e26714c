#include "stagecraft/actors/executor/setup/verify_setup.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/lower/feeds.h"
#include "stagecraft/compiler/stage/verify_stage.h"

namespace stagecraft {
namespace {

bool ascends_from_zero(const std::vector<Rank>& ranks) {
  return (ranks.empty() || ranks.front().value >= 0) &&
         std::ranges::adjacent_find(ranks, std::greater_equal<>{}) == ranks.end();
}

/// Returns whether both have the same gradients to sum.
bool are_copies(const StageProgram& a, const StageProgram& b) {
  const auto same = [&](const auto& p, const auto& q, bool alike) {
    const Value& of_p = a.at(p.value);
    const Value& of_q = b.at(q.value);
    return alike && of_p.sizes == of_q.sizes && of_p.dtype == of_q.dtype;
  };
  return std::ranges::equal(a.parameters,
                            b.parameters,
                            [&](const StageParameter& p, const StageParameter& q) {
                              return same(p, q, p.trained == q.trained);
                            }) &&
         std::ranges::equal(a.buffers, b.buffers, [&](const StageBuffer& p, const StageBuffer& q) {
           return same(p, q, p.written == q.written);
         });
}

class SetupCheck {
 public:
  explicit SetupCheck(const RankSetup& setup) : setup_(setup) {}

  std::vector<std::string> run() {
    check_ranks();
    check_stages();
    if (faults_.empty()) {  // the following checks look up values and stages
      check_positions();
      check_groups();
      for (std::size_t t = 0; t < setup_.ties.size(); ++t) {
        check_tie(setup_.ties[t], t);
      }
      check_list(setup_.train, "training");
      check_feeds();
    }
    check_settings();
    return std::move(faults_);
  }

  std::vector<std::string> run(const RankPlan& evaluation) {
    check_list(evaluation, "evaluation");
    return std::move(faults_);
  }

 private:
  template <class... Args>
  void fault(fmt::format_string<Args...> what, Args&&... args) {
    if (faults_.size() < kMostFaults) {
      faults_.push_back(fmt::format(what, std::forward<Args>(args)...));
    }
  }

  void check_ranks() {
    if (!ascends_from_zero(setup_.ranks) ||
        !std::ranges::binary_search(setup_.ranks, setup_.rank)) {
      fault("the voting ranks are not ascending, or rank {} is not one of them", setup_.rank.value);
    }
    if (setup_.microbatches < 1 || setup_.losses < 1 || setup_.losses > setup_.microbatches) {
      fault("a step has {} microbatches and {} losses", setup_.microbatches, setup_.losses);
    }
  }

  void check_stages() {
    StageId last(-1);
    for (const StageProgram& stage : setup_.stages) {
      if (stage.id <= last || stage.replica < 0) {
        fault("stage {} of replica {} follows stage {}", stage.id.value, stage.replica, last.value);
      }
      last = stage.id;
      for (std::string& of_stage : verify(stage)) {
        fault("{}", of_stage);
      }
    }
  }

  /// Checks positions, since norms have a place for every parameter of the model.
  void check_positions() {
    if (setup_.model_parameters < 0 ||
        setup_.model_parameters > std::numeric_limits<std::int32_t>::max()) {
      fault("the model has {} parameters", setup_.model_parameters);
    }
    for (const StageProgram& stage : setup_.stages) {
      for (const StageParameter& parameter : stage.parameters) {
        if (parameter.position < 0 || parameter.position >= setup_.model_parameters) {
          fault("stage {}: the parameter \"{}\" is number {} of {}",
                stage.id.value,
                parameter.name,
                parameter.position,
                setup_.model_parameters);
        }
      }
    }
  }

  void check_groups() {
    for (std::size_t g = 0; g < setup_.replica_groups.size(); ++g) {
      const ReplicaGroup& group = setup_.replica_groups[g];
      const StageProgram* first = nullptr;
      for (const StageProgram& stage : setup_.stages) {
        if (std::ranges::find(group.stages, stage.id) == group.stages.end()) {
          continue;
        }
        first = first == nullptr ? &stage : first;
        if (!are_copies(*first, stage)) {
          fault(
              "stages {} and {} are copies of each other (group {}), but their parameters or "
              "buffers differ",
              first->id.value,
              stage.id.value,
              g);
        }
      }
      const bool is_member = std::ranges::find(group.ranks, setup_.rank) != group.ranks.end();
      if (!ascends_from_zero(group.ranks) || is_member != (first != nullptr)) {
        fault("the ranks of group {} are not ascending, or not the ranks that hold its stages", g);
      }
    }
  }

  /// Checks that the tie's parts fit each other here, and that it names the stages on this rank.
  void check_tie(const Tie& tie, std::size_t number) {
    const bool known = std::ranges::all_of(
        tie.ranks, [&](Rank rank) { return std::ranges::binary_search(setup_.ranks, rank); });
    std::set<StageId> stages(tie.stages.begin(), tie.stages.end());
    if (!known || tie.ranks.size() != tie.stages.size() || stages.size() != tie.stages.size() ||
        tie.stages.empty() || tie.parameters.empty()) {
      fault("tie {} has no parameters, or does not have one rank for each of its stages", number);
      return;
    }
    const StageProgram* first = nullptr;
    for (std::size_t i = 0; i < tie.stages.size(); ++i) {
      const auto stage = std::ranges::find(setup_.stages, tie.stages[i], &StageProgram::id);
      const bool here = stage != setup_.stages.end();
      if (here != (tie.ranks[i] == setup_.rank)) {
        fault("tie {} has stage {} on rank {}", number, tie.stages[i].value, tie.ranks[i].value);
        return;
      }
      if (here) {
        first = first == nullptr ? &*stage : first;
        check_part(tie, number, *first, *stage);
      }
    }
  }

  void check_part(const Tie& tie,
                  std::size_t number,
                  const StageProgram& first,
                  const StageProgram& stage) {
    const Value* like = nullptr;
    for (const std::string& name : tie.parameters) {
      const Value* here = trained_parameter(stage, name);
      const Value* there = trained_parameter(first, name);
      like = like == nullptr ? here : like;
      if (here == nullptr || there == nullptr || here->sizes != there->sizes ||
          here->dtype != there->dtype || here->dtype != like->dtype) {
        fault("tie {}: stage {} trains no parameter \"{}\" of the type and shape of the others",
              number,
              stage.id.value,
              name);
      }
    }
  }

  [[nodiscard]] static const Value* trained_parameter(const StageProgram& stage,
                                                      const std::string& name) {
    const auto found = std::ranges::find(stage.parameters, name, &StageParameter::name);
    return found == stage.parameters.end() || !found->trained ? nullptr : &stage.at(found->value);
  }

  void check_list(const RankPlan& list, std::string_view what) {
    if (list.rank != setup_.rank) {
      fault("its list for {} belongs to rank {}", what, list.rank.value);
    }
    for (const Instruction& i : list.instructions) {
      if (i.op == Op::Collective && !sums_here(i)) {
        fault("i{} of its list for {} sums over {} {}, of which it holds no stage",
              i.id.value,
              what,
              i.collective == CollectiveKind::AllGather ? "tie" : "group",
              i.group);
      }
      const bool transfer = i.op == Op::Send || i.op == Op::Recv;
      const bool known = i.peer == kDriver || std::ranges::binary_search(setup_.ranks, i.peer);
      if (transfer && (!known || i.peer == setup_.rank || i.edge.value < 0)) {
        fault("i{} of its list for {} passes edge {} between it and rank {}",
              i.id.value,
              what,
              i.edge.value,
              i.peer.value);
      }
    }
  }

  /// Checks the slices that the rank may have to read of a batch.
  void check_feeds() {
    for (const std::vector<BatchSlice>* side : {&setup_.inputs, &setup_.labels}) {
      for (const BatchSlice& slice : *side) {
        const bool split = !slice.replicated;
        if (std::ranges::any_of(slice.sizes, [](std::int64_t size) { return size < 0; }) ||
            (split &&
             (slice.sizes.empty() ||
              slice.sizes[0] > std::numeric_limits<std::int64_t>::max() / setup_.microbatches)) ||
            !is_memory_order(slice.order, slice.sizes.size())) {
          fault("a tensor of a batch has impossible sizes");
        }
      }
    }
    for (const Feed& feed : feeds_of(setup_.train, setup_.stages)) {
      const std::vector<BatchSlice>& side = feed.label ? setup_.labels : setup_.inputs;
      if (!std::in_range<std::size_t>(feed.position) ||
          static_cast<std::size_t>(feed.position) >= side.size() || feed.microbatch.value < 0 ||
          feed.microbatch.value >= setup_.microbatches) {
        fault("its list for training receives {} {} of microbatch {}, of {} and {}",
              feed.label ? "label" : "input",
              feed.position,
              feed.microbatch.value,
              side.size(),
              setup_.microbatches);
      }
    }
  }

  [[nodiscard]] bool sums_here(const Instruction& i) const {
    const auto here = [&](const auto& groups) {
      const auto number = static_cast<std::size_t>(i.group);
      return i.group >= 0 && number < groups.size() &&
             std::ranges::find(groups[number].ranks, setup_.rank) != groups[number].ranks.end();
    };
    return i.collective == CollectiveKind::AllGather ? here(setup_.ties)
                                                     : here(setup_.replica_groups);
  }

  void check_settings() {
    try {
      check_optimizer(setup_.optimizer);
      check_options(setup_.options);
      stagecraft::check_groups(setup_.options.groups, setup_.optimizer);
    } catch (const Error& error) {
      fault("{}", error.message());
    }
    if (setup_.options.threads_per_worker > kMostThreads) {
      fault("a worker is told to use {} threads, more than {}",
            setup_.options.threads_per_worker,
            kMostThreads);
    }
  }

  static constexpr int kMostThreads = 4096;

  const RankSetup& setup_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> verify(const RankSetup& setup) {
  return SetupCheck(setup).run();
}

std::vector<std::string> verify(const RankPlan& evaluation, const RankSetup& setup) {
  return SetupCheck(setup).run(evaluation);
}

}  // namespace stagecraft
