#include "stagecraft/actors/executor/verify_setup.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/verify_stage.h"

namespace stagecraft {
namespace {

bool ascends_from_zero(const std::vector<Rank>& ranks) {
  return (ranks.empty() || ranks.front().value >= 0) &&
         std::ranges::adjacent_find(ranks, std::greater_equal<>{}) == ranks.end();
}

/// Whether both have the same gradients to sum.
bool are_copies(const StageProgram& a, const StageProgram& b) {
  return std::ranges::equal(
      a.parameters, b.parameters, [&](const StageParameter& p, const StageParameter& q) {
        const Value& of_p = a.at(p.value);
        const Value& of_q = b.at(q.value);
        return p.trained == q.trained && of_p.sizes == of_q.sizes && of_p.dtype == of_q.dtype;
      });
}

class SetupCheck {
 public:
  explicit SetupCheck(const RankSetup& setup) : setup_(setup) {}

  std::vector<std::string> run() {
    check_ranks();
    check_stages();
    if (faults_.empty()) {  // what follows looks values and stages up
      check_positions();
      check_groups();
      check_list(setup_.train, "training");
      check_list(setup_.evaluate, "evaluation");
    }
    check_settings();
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
      fault("the ranks that vote are not ascending, or rank {} is none of them", setup_.rank.value);
    }
    if (setup_.microbatches < 1) {
      fault("a step has {} microbatches", setup_.microbatches);
    }
  }

  void check_stages() {
    StageId last(-1);
    for (const StageProgram& stage : setup_.stages) {
      if (stage.id <= last || stage.replica < 0) {
        fault("stage {} of replica {} comes behind stage {}",
              stage.id.value,
              stage.replica,
              last.value);
      }
      last = stage.id;
      for (std::string& of_stage : verify(stage)) {
        fault("{}", of_stage);
      }
    }
  }

  /// Norms have a place for every parameter of the model.
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
              "stages {} and {} are to be copies of each other (group {}), and have other "
              "parameters",
              first->id.value,
              stage.id.value,
              g);
        }
      }
      const bool is_member = std::ranges::find(group.ranks, setup_.rank) != group.ranks.end();
      if (!ascends_from_zero(group.ranks) || is_member != (first != nullptr)) {
        fault("the ranks of group {} are not ascending, or not those that have its stages", g);
      }
    }
  }

  void check_list(const RankPlan& list, std::string_view what) {
    if (list.rank != setup_.rank) {
      fault("its list for {} is that of rank {}", what, list.rank.value);
    }
    for (const Instruction& i : list.instructions) {
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

  void check_settings() {
    try {
      check_optimizer(setup_.optimizer);
      check_options(setup_.options);
    } catch (const Error& error) {
      fault("{}", error.message());
    }
    if (setup_.options.threads_per_worker > kMostThreads) {
      fault("a worker is to use {} threads, more than {}",
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

}  // namespace stagecraft
