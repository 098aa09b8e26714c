#include "stagecraft/actors/executor/setup/verify_setup.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/lower/feeds.h"
#include "stagecraft/compiler/plan/check_groups.h"
#include "stagecraft/compiler/stage/division.h"
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
      check_buckets();
      check_groups();
      check_share(setup_.train, "training");
      check_feeds();
    }
    check_settings();
    return std::move(faults_);
  }

  std::vector<std::string> run(const PlanShare& evaluation) {
    if (evaluation.list == nullptr || evaluation.tables == nullptr) {
      fault("its share of the plan for evaluation is empty");
    } else if (evaluation.tables->training) {
      fault("its share of the plan for evaluation trains");
    } else if (!has_groups_of_training(*evaluation.tables)) {
      fault("its share of the plan for evaluation has other groups or buckets than training");
    } else {
      check_tables(*evaluation.tables);
      check_share(evaluation, "evaluation");
    }
    return std::move(faults_);
  }

 private:
  template <class... Args>
  void fault(fmt::format_string<Args...> what, Args&&... args) {
    if (faults_.size() < kMostFaults) {
      faults_.push_back(fmt::format(what, std::forward<Args>(args)...));
    }
  }

  [[nodiscard]] const PlanTables& tables() const { return *setup_.train.tables; }

  /// Returns whether an evaluation has no groups, or means by their numbers those that train.
  [[nodiscard]] bool has_groups_of_training(const PlanTables& evaluation) const {
    return evaluation.groups.empty()
               ? evaluation.buckets.empty()
               : evaluation.groups == tables().groups && std::ranges::equal(evaluation.buckets,
                                                                            tables().buckets,
                                                                            {},
                                                                            &PlanBucket::stages,
                                                                            &PlanBucket::stages);
  }
  [[nodiscard]] const std::vector<StageId>& held() const { return setup_.train.list->stages; }

  void check_ranks() {
    if (!ascends_from_zero(setup_.ranks) ||
        !std::ranges::binary_search(setup_.ranks, setup_.rank())) {
      fault("the voting ranks are not ascending, or rank {} is not one of them",
            setup_.rank().value);
    }
    check_tables(tables());
  }

  void check_tables(const PlanTables& tables) {
    if (tables.microbatches < 1 || tables.losses < 1 || tables.losses > tables.microbatches) {
      fault("a step has {} microbatches and {} losses", tables.microbatches, tables.losses);
    }
    for (const PlanStage& stage : tables.stages) {
      if (stage.size < 1 || stage.size > tables.microbatches || stage.copy < 0 ||
          stage.program.value < 0 || stage.program.index() >= tables.stages.size()) {
        fault("a stage takes {} of {} microbatches, or is of program {}",
              stage.size,
              tables.microbatches,
              stage.program.value);
      }
    }
  }

  void check_stages() {
    if (setup_.stages.size() != held().size()) {
      fault("it has {} stages, and its list has {}", setup_.stages.size(), held().size());
      return;
    }
    StageId last(-1);
    for (std::size_t s = 0; s < held().size(); ++s) {
      if (held()[s] <= last || held()[s].index() >= tables().stages.size()) {
        fault("stage {} follows stage {}", held()[s].value, last.value);
        return;
      }
      last = held()[s];
      if (setup_.stages[s]->id != setup_.train.stage(s).program) {
        fault("stage {} has the program of another", last.value);
      }
      for (std::string& of_stage : verify(*setup_.stages[s])) {
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
    for (const auto& stage : setup_.stages) {
      for (const StageParameter& parameter : stage->parameters) {
        if (parameter.position < 0 || parameter.position >= setup_.model_parameters) {
          fault("stage {}: the parameter \"{}\" is number {} of {}",
                stage->id.value,
                parameter.name,
                parameter.position,
                setup_.model_parameters);
        }
      }
    }
  }

  /// Checks that the buckets of each stage are chunks that it has, each in one bucket.
  void check_buckets() {
    for (std::size_t s = 0; s < held().size(); ++s) {
      std::int32_t end = 0;
      bool lends = false;
      std::vector<int> completing = completing_chunks(*setup_.stages[s]);
      const auto chunks = static_cast<std::int32_t>(setup_.stages[s]->chunks.size());
      for (const BucketCut& cut : setup_.buckets_of(s)) {
        const ChunkRange& bucket = cut.chunks;
        if (bucket.first < end || bucket.count < 1 || bucket.count > chunks - bucket.first) {
          fault("stage {} has a bucket of {} chunks from chunk {} on, of {}",
                held()[s].value,
                bucket.count,
                bucket.first,
                chunks);
          return;
        }
        end = bucket.end();
        if (cut.lends_weights() &&
            !read_beyond(*setup_.stages[s], bucket.first, bucket.end()).empty()) {
          fault("stage {} lends weights of a bucket that chunks of others use", held()[s].value);
        }
        lends = lends || cut.lends_weights();
        std::erase_if(completing, [&](int chunk) { return bucket.has(chunk); });
      }
      if (lends && !completing.empty()) {
        fault("stage {} lends weights, and has some in no bucket", held()[s].value);
      }
    }
  }

  /// Checks that the ranks of a group can divide the chunk.
  void check_divided(const PlanGroup& group, std::size_t number) {
    const std::vector<Rank> members = group.members(setup_.rank());
    const auto can_divide = [&](const std::vector<Rank>& set) {
      return ascends_from_zero(set) && set.size() >= 2 && set.size() == group.sets.front().size();
    };
    std::set<Rank> all;
    std::size_t count = 0;
    for (const std::vector<Rank>& set : group.sets) {
      all.insert(set.begin(), set.end());
      count += set.size();
    }
    if (group.sets.empty() || !std::ranges::all_of(group.sets, can_divide) || all.size() != count ||
        group.stages.size() != 1 ||
        members.empty() != (program_of(group.stages.front()) == nullptr)) {
      fault(
          "the ranks of group {} do not hold its stage, or its sets are no equal and separate ones "
          "of at least 2",
          number);
      return;
    }
    const auto before = std::distance(all.begin(), all.lower_bound(setup_.rank()));
    if (!members.empty() &&
        setup_.train.rank.first_microbatch != before * (tables().microbatches / std::ssize(all))) {
      fault("the ranks of group {} do not take the microbatches in their order", number);
    }
    if (setup_.options.device != "cpu" || setup_.options.dispatch == Dispatch::Decided) {
      fault(
          "group {} divides weights on an accelerator, or in an order that is decided while it "
          "runs",
          number);
    }
    if (group.bucket < 0 || static_cast<std::size_t>(group.bucket) >= tables().buckets.size()) {
      fault("group {} divides a bucket that there is not", number);
      return;
    }
    const PlanBucket& bucket = tables().buckets[static_cast<std::size_t>(group.bucket)];
    const StageProgram* stage = program_of(group.stages.front());
    const ChunkRange& chunks = bucket.chunks;
    if (bucket.stages != group.stages || chunks.count != 1 || chunks.first < 0 ||
        (stage != nullptr && chunks.first >= std::ssize(stage->chunks))) {
      fault("group {} divides a bucket of other stages or chunks", number);
      return;
    }
    if (stage == nullptr) {
      return;
    }
    for (const StageParameter& parameter : stage->parameters) {
      const bool tied = std::ranges::any_of(tables().groups, [&](const PlanGroup& tie) {
        return tie.kind == PlanGroup::Kind::Tie &&
               std::ranges::find(tie.parameters, parameter.name) != tie.parameters.end();
      });
      if (tied && uses(stage->chunks[static_cast<std::size_t>(chunks.first)], parameter.value)) {
        fault("group {} divides the parameter {}, which is tied", number, parameter.name);
      }
    }
    if (const std::string why = misfit_of_division(*stage, chunks.first, std::ssize(members));
        !why.empty()) {
      fault("group {} divides a chunk that {}", number, why);
    }
  }

  void check_groups() {
    std::set<std::pair<PlanGroup::Kind, std::int32_t>> known;  // with its bucket
    for (std::size_t g = 0; g < tables().groups.size(); ++g) {
      const PlanGroup& group = tables().groups[g];
      if (group.kind != PlanGroup::Kind::Tie && !known.emplace(group.kind, group.bucket).second) {
        fault("group {} sums or divides the bucket of another group of its kind", g);
        return;
      }
      if (group.has_rounds() && setup_.options.dispatch == Dispatch::Decided) {
        fault("group {} sums in rounds, and the order is decided while it runs", g);
      }
      if (group.has_shards() && setup_.options.device != "cpu") {
        fault("group {} has shards, and the rank is not on the CPU", g);
        return;
      }
      for (const std::vector<Rank>& set : group.sets) {
        const bool vote = std::ranges::all_of(
            set, [&](Rank rank) { return std::ranges::binary_search(setup_.ranks, rank); });
        if (!vote) {
          fault("group {} has ranks that do not vote", g);
          return;
        }
      }
      switch (group.kind) {
        case PlanGroup::Kind::Copies:
          check_copies(group, g);
          break;
        case PlanGroup::Kind::Tie:
          check_tie(group, g);
          break;
        case PlanGroup::Kind::Divided:
          check_divided(group, g);
          break;
      }
    }
  }

  /// Returns the program of a stage of this rank; null for a stage of another.
  [[nodiscard]] const StageProgram* program_of(StageId stage) const {
    const auto found = std::ranges::find(held(), stage);
    return found == held().end()
               ? nullptr
               : setup_.stages[static_cast<std::size_t>(found - held().begin())].get();
  }

  void check_copies(const PlanGroup& group, std::size_t number) {
    const StageProgram* first = nullptr;
    for (const StageId stage : group.stages) {
      const StageProgram* here = program_of(stage);
      first = first == nullptr ? here : first;
      if (here != nullptr && !are_copies(*first, *here)) {
        fault(
            "stages {} and {} are copies of each other (group {}), but their parameters or "
            "buffers differ",
            first->id.value,
            stage.value,
            number);
      }
    }
    const std::vector<Rank> members = group.members(setup_.rank());
    const bool ascending = std::ranges::all_of(group.sets, ascends_from_zero);
    if (group.sets.empty() || !ascending || members.empty() != (first == nullptr)) {
      fault("the ranks of group {} are not ascending, or not the ranks that hold its stages",
            number);
    }
    const auto held_here =
        std::ranges::count_if(group.stages, [&](StageId s) { return program_of(s) != nullptr; });
    if (group.has_shards() && held_here > 1) {
      fault("group {} has shards and two copies of its stage on this rank", number);
    }
  }

  /// Checks that the tie's parts fit each other here, and that it names the stages on this rank.
  void check_tie(const PlanGroup& tie, std::size_t number) {
    const std::set<StageId> stages(tie.stages.begin(), tie.stages.end());
    if (stages.size() != tie.stages.size() || tie.parameters.empty()) {
      fault("group {} has no parameters, or a stage twice", number);
      return;
    }
    for (const std::vector<Rank>& set : tie.sets) {
      if (set.size() != tie.stages.size()) {
        fault("group {} does not have one rank for each of its stages", number);
        return;
      }
    }
    if (!have_equal_shards(tables(), tie)) {
      fault("group {} has ranks with other shards of its stages", number);
    }
    const StageProgram* first = nullptr;
    for (std::size_t i = 0; i < tie.stages.size(); ++i) {
      const StageProgram* here = program_of(tie.stages[i]);
      const auto on_this_rank = std::ranges::count_if(
          tie.sets, [&](const std::vector<Rank>& set) { return set[i] == setup_.rank(); });
      if (on_this_rank != (here == nullptr ? 0 : 1)) {
        fault("group {} has stage {} on other ranks", number, tie.stages[i].value);
        return;
      }
      if (here != nullptr) {
        first = first == nullptr ? here : first;
        check_part(tie, number, *first, *here);
      }
    }
  }

  void check_part(const PlanGroup& tie,
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
        fault("group {}: stage {} trains no parameter \"{}\" of the type and shape of the others",
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

  /// Checks what the list's numbers mean on this rank.
  void check_share(const PlanShare& share, std::string_view what) {
    const RankPlan& rank = share.rank;
    if (rank.rank != setup_.rank() || rank.first_microbatch < 0 ||
        rank.first_microbatch >= share.tables->microbatches) {
      fault("its list for {} belongs to rank {}, from microbatch {} on",
            what,
            rank.rank.value,
            rank.first_microbatch);
    }
    const auto is_other = [&](Rank peer) {
      return peer != setup_.rank() && std::ranges::binary_search(setup_.ranks, peer);
    };
    if (rank.peers.size() != static_cast<std::size_t>(std::max(0, share.list->peers)) ||
        rank.peers.empty() || rank.peers.front() != kDriver ||
        !std::all_of(rank.peers.begin() + 1, rank.peers.end(), is_other)) {
      fault("the peers of its list for {} are not the driver and other ranks", what);
    }
    for (const Instruction& i : share.list->instructions) {
      if ((is_collective(i.op) || i.op == Op::Release) && !sums_here(*share.tables, i)) {
        fault("i{} of its list for {} sums over group {}, of which it is no member",
              i.id.value,
              what,
              i.group);
      }
      if (is_transfer(i.op) && i.edge.value < 0) {
        fault("i{} of its list for {} passes edge {}", i.id.value, what, i.edge.value);
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
              slice.sizes[0] > std::numeric_limits<std::int64_t>::max() / tables().microbatches)) ||
            !is_memory_order(slice.order, slice.sizes.size())) {
          fault("a tensor of a batch has impossible sizes");
        }
      }
    }
    if (!verify(*setup_.train.list, tables(), "the list").empty()) {
      return;  // BP-1 refuses it
    }
    for (const Feed& feed :
         feeds_of(*setup_.train.list, setup_.train.rank, tables(), pointers_to(setup_.stages))) {
      const std::vector<BatchSlice>& side = feed.label ? setup_.labels : setup_.inputs;
      if (!std::in_range<std::size_t>(feed.position) ||
          static_cast<std::size_t>(feed.position) >= side.size() || feed.microbatch.value < 0 ||
          feed.microbatch.value >= tables().microbatches) {
        fault("its list for training receives {} {} of microbatch {}, of {} and {}",
              feed.label ? "label" : "input",
              feed.position,
              feed.microbatch.value,
              side.size(),
              tables().microbatches);
      }
    }
  }

  [[nodiscard]] bool sums_here(const PlanTables& tables, const Instruction& i) const {
    return i.group >= 0 && static_cast<std::size_t>(i.group) < tables.groups.size() &&
           !tables.groups[static_cast<std::size_t>(i.group)].members(setup_.rank()).empty();
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

std::vector<std::string> verify(const PlanShare& evaluation, const RankSetup& setup) {
  return SetupCheck(setup).run(evaluation);
}

}  // namespace stagecraft
