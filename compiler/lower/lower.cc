#include "stagecraft/compiler/lower/lower.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/lower/check_divided.h"
#include "stagecraft/compiler/lower/emit.h"
#include "stagecraft/compiler/lower/feeds.h"
#include "stagecraft/compiler/lower/lifetimes.h"
#include "stagecraft/compiler/lower/releases.h"
#include "stagecraft/compiler/lower/step_source.h"
#include "stagecraft/compiler/lower/waits.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/evaluation_chunks.h"
#include "stagecraft/compiler/program/passes.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"

namespace stagecraft {
namespace {

/// Lowering is what the passes work on: the first group is given, the last one is the result.
struct Lowering {
  const CompiledProgram& program;
  const Strategy& strategy;
  const Layout& layout;
  const bool training;
  const Plan* const trained;  ///< of an evaluation; null without

  StepSource source;
  IssuedDag issued;
  int units = 1;                                      ///< of the step (LA-3)
  std::vector<std::vector<EmittedList::Peer>> peers;  ///< by list
  std::vector<int> group_of_bucket, exchange_of_bucket, group_of_tie;

  Plan plan;
};

/// Returns the stream on which the group gathers weights in training, or exchanges samples.
std::string stream_of_gathers(const Plan& trained, std::int32_t group) {
  for (const RankList& list : trained.lists) {
    for (const Instruction& i : list.instructions) {
      if (i.op == Op::Start && i.group == group &&
          (gathers_weights(trained.tables, i) || is_exchange(i))) {
        return list.streams[i.stream.index()];
      }
    }
  }
  return {};
}

/// Returns the buckets of the program that trains as the evaluation uses them: those of groups that
/// split weights lend them. None if there is no such group.
std::vector<DagBucket> buckets_of_evaluation(const CompiledProgram& evaluation,
                                             const Plan& trained) {
  const PlanTables& tables = trained.tables;
  std::vector<DagBucket> buckets;
  for (std::size_t g = 0; g < tables.groups.size(); ++g) {
    const PlanGroup& group = tables.groups[g];
    if (!group.splits_weights()) {
      continue;
    }
    if (buckets.empty()) {
      for (const PlanBucket& bucket : tables.buckets) {
        buckets.push_back({.stages = bucket.stages, .first_chunk = 0, .chunks = 0});
      }
    }
    const auto number = static_cast<std::size_t>(group.bucket);
    const std::size_t stage = tables.stages[group.stages.front().index()].program.index();
    const ChunkRange users = users_of(evaluation.partition.stages[stage],
                                      evaluation.evaluates->partition.stages[stage],
                                      tables.buckets[number].chunks);
    DagBucket& bucket = buckets[number];
    bucket.first_chunk = users.first;
    bucket.chunks = users.count;
    bucket.lends = true;
    bucket.gather_stream = stream_of_gathers(trained, static_cast<std::int32_t>(g));
  }
  return buckets;
}

void read_program(Lowering& l) {
  l.source = step_source(l.program, l.layout);
  if (l.trained != nullptr) {
    l.source.dag.buckets = buckets_of_evaluation(l.program, *l.trained);
  }
}

void apply_directives(Lowering& l) {
  l.issued.dag = apply(l.strategy, l.source.dag, l.training);
  for (const std::vector<Rank>& place : l.issued.dag.places) {
    l.units = std::lcm(l.units, static_cast<int>(place.size()));
  }
}

void put_in_order(Lowering& l) {
  l.issued = issue(std::move(l.issued.dag));
}

/// Returns the ranks that divide the weights of a bucket, one set for each copy of them.
PlanGroup ranks_that_divide(const TrainingDag& dag, int bucket) {
  const DagBucket& of = dag.buckets[static_cast<std::size_t>(bucket)];
  const auto node = std::ranges::find_if(dag.nodes, [&](const DagNode& n) {
    return computes(n.kind) && n.stage == of.stages.front();
  });
  const std::vector<Rank>& ranks = dag.places[static_cast<std::size_t>(node->place)];
  PlanGroup group{.kind = PlanGroup::Kind::Divided, .bucket = bucket, .stages = of.stages};
  for (auto set = ranks.begin(); set != ranks.end(); set += of.parts) {
    group.sets.emplace_back(set, set + of.parts);
  }
  return group;
}

/// Returns the copies of a bucket, on all their ranks.
PlanGroup copies_of(const TrainingDag& dag, int bucket) {
  std::set<Rank> ranks;
  Sharing sharing = Sharing::Nothing;
  for (const DagNode& node : dag.nodes) {
    if (node.kind == DagKind::AllGather && node.serves && node.bucket == bucket) {
      sharing = Sharing::Weights;
    }
    const bool scatters = node.kind == DagKind::ReduceScatter;
    if ((node.kind == DagKind::AllReduce || scatters) && node.bucket == bucket) {
      if (scatters) {
        sharing = std::max(
            sharing, node.microbatch == Microbatch(kNone) ? Sharing::States : Sharing::Gradients);
      }
      const std::vector<Rank>& place = dag.places[static_cast<std::size_t>(node.place)];
      ranks.insert(place.begin(), place.end());
    }
  }
  PlanGroup group{.kind = PlanGroup::Kind::Copies,
                  .bucket = bucket,
                  .stages = dag.buckets[static_cast<std::size_t>(bucket)].stages,
                  .sharing = sharing};
  if (!ranks.empty()) {
    group.sets.emplace_back(ranks.begin(), ranks.end());
  }
  return group;
}

/// Gives an evaluation the groups that train, by their numbers there.
void make_groups_of_evaluation(Lowering& l) {
  PlanTables& tables = l.plan.tables;
  for (const DagBucket& bucket : l.issued.dag.buckets) {
    tables.buckets.push_back({bucket.stages, {bucket.first_chunk, bucket.chunks}});
  }
  if (tables.buckets.empty()) {
    return;  // it gathers nothing
  }
  tables.groups = l.trained->tables.groups;
  l.group_of_bucket.assign(tables.buckets.size(), -1);
  for (std::size_t g = 0; g < tables.groups.size(); ++g) {
    if (gathers_for_tasks(tables, tables.groups[g])) {
      l.group_of_bucket[static_cast<std::size_t>(tables.groups[g].bucket)] = static_cast<int>(g);
    }
  }
}

void make_groups(Lowering& l) {
  const TrainingDag& dag = l.issued.dag;
  PlanTables& tables = l.plan.tables;
  std::vector<int> place_of(l.source.stages.size());
  for (const DagNode& node : dag.nodes) {
    if (computes(node.kind)) {
      place_of[node.stage.index()] = node.place;
    }
  }
  for (std::size_t b = 0; b < dag.buckets.size(); ++b) {
    const DagBucket& bucket = dag.buckets[b];
    tables.buckets.push_back({bucket.stages, {bucket.first_chunk, bucket.chunks}});
    PlanGroup copies = copies_of(dag, static_cast<int>(b));
    l.exchange_of_bucket.push_back(-1);
    if (bucket.is_divided()) {
      l.exchange_of_bucket.back() = static_cast<int>(tables.groups.size());
      tables.groups.push_back(ranks_that_divide(dag, static_cast<int>(b)));
      copies.sets = copies_of_parts(tables.groups.back());
    }
    l.group_of_bucket.push_back(copies.sets.empty() ? -1 : static_cast<int>(tables.groups.size()));
    if (!copies.sets.empty()) {
      tables.groups.push_back(std::move(copies));
    }
  }
  for (std::size_t t = 0; t < dag.source.ties.size(); ++t) {
    PlanGroup tie{.kind = PlanGroup::Kind::Tie,
                  .stages = dag.source.ties[t].stages,
                  .parameters = l.source.tied[t]};
    for (const StageId stage : tie.stages) {
      std::vector<Rank> ranks = dag.places[static_cast<std::size_t>(place_of[stage.index()])];
      std::ranges::sort(ranks);  // as shards are (DG-4)
      tie.sets.resize(ranks.size());
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        tie.sets[i].push_back(ranks[i]);
      }
    }
    l.group_of_tie.push_back(static_cast<int>(tables.groups.size()));
    tables.groups.push_back(std::move(tie));
  }
}

void make_tables(Lowering& l) {
  PlanTables& tables = l.plan.tables;
  tables.training = l.training;
  tables.microbatches = l.units * l.issued.dag.microbatches;
  tables.losses = losses_of(l.program);
  tables.stages = l.source.stages;
  if (l.training) {
    make_groups(l);
  } else {
    make_groups_of_evaluation(l);
  }
}

/// Refuses weights that are gathered for tasks of one bucket, and that others use, too. In an
/// evaluation chunks may share buckets.
void check_lent_weights(Lowering& l) {
  for (const PlanGroup& group : l.plan.tables.groups) {
    if (!l.training || !group.lends_weights()) {
      continue;
    }
    const ChunkRange& chunks = l.plan.tables.buckets[static_cast<std::size_t>(group.bucket)].chunks;
    const StageProgram& stage =
        l.program.partition
            .stages[l.plan.tables.stages[group.stages.front().index()].program.index()];
    const std::string name = read_beyond(stage, chunks.first, chunks.end());
    if (!name.empty()) {
      throw Error(
          Errc::ScheduleInvalid,
          fmt::format("stage \"{}\" uses the parameter {} in several of its buckets, and each "
                      "gathers its own weights: choose a larger bucket_size, or shard_grads "
                      "in place of shard_params",
                      stage.name,
                      name));
    }
  }
}

/// Refuses what copies of a stage have to keep equal if they divide all that it trains: a tied
/// parameter, and buffers.
void refuse_shared(const Lowering& l, const PlanGroup& divided) {
  const StageId stage = divided.stages.front();
  const StageProgram& of =
      l.program.partition.stages[l.plan.tables.stages[stage.index()].program.index()];
  const auto is_of_stage = [&](const PlanGroup& group, PlanGroup::Kind kind) {
    return group.kind == kind && std::ranges::find(group.stages, stage) != group.stages.end();
  };
  const std::vector<PlanGroup>& groups = l.plan.tables.groups;
  for (const StageParameter& parameter : of.parameters) {
    const bool tied = std::ranges::any_of(groups, [&](const PlanGroup& group) {
      return is_of_stage(group, PlanGroup::Kind::Tie) &&
             std::ranges::find(group.parameters, parameter.name) != group.parameters.end();
    });
    const std::int32_t chunk =
        l.plan.tables.buckets[static_cast<std::size_t>(divided.bucket)].chunks.first;
    if (tied && uses(of.chunks[static_cast<std::size_t>(chunk)], parameter.value)) {
      throw Error(Errc::ScheduleInvalid,
                  fmt::format("the region in chunk {} of stage \"{}\" has the parameter {}, which "
                              "other stages use, too, so ranks cannot divide it: leave shard out, "
                              "or untie it",
                              chunk,
                              of.name,
                              parameter.name));
    }
  }
  const bool sums = std::ranges::any_of(groups, [&](const PlanGroup& group) {
    return is_of_stage(group, PlanGroup::Kind::Copies) && !group.sums_parts();
  });
  if (!sums && std::ranges::any_of(of.buffers, &StageBuffer::written)) {
    throw Error(
        Errc::ScheduleInvalid,
        fmt::format("stage \"{}\" changes buffers, and trains nothing but a region that its "
                    "ranks divide, so no sum of its copies keeps the buffers equal: leave "
                    "shard out",
                    of.name));
  }
}

void check_divided_weights(Lowering& l) {
  for (const PlanGroup& group : l.plan.tables.groups) {
    if (!l.training || group.kind != PlanGroup::Kind::Divided) {
      continue;
    }
    const auto parts = std::ssize(group.sets.front());
    const auto ranks = parts * std::ssize(group.sets);
    const StageId stage = group.stages.front();
    if (ranks != l.units) {
      throw Error(Errc::ScheduleInvalid,
                  fmt::format("stage {} is on {} and others on more: ranks that divide a region "
                              "(shard) take one microbatch at a time, so place all stages on as "
                              "many ranks",
                              stage.value,
                              count_text(ranks, "rank")));
    }
    refuse_shared(l, group);
    check_divided(l.program,
                  l.program.partition.stages[l.plan.tables.stages[stage.index()].program.index()],
                  l.plan.tables.buckets[static_cast<std::size_t>(group.bucket)].chunks.first,
                  parts);
  }
}

bool has_overlaps(const RankList& list) {
  return std::ranges::any_of(list.instructions,
                             [](const Instruction& i) { return i.overlap >= 0; });
}

void emit_lists(Lowering& l) {
  const DagAdjacency edges(l.issued.dag);
  std::vector<int> positions(l.issued.dag.nodes.size());
  for (const std::vector<int>& nodes : l.issued.lists) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      positions[static_cast<std::size_t>(nodes[i])] = static_cast<int>(i);
    }
  }
  const EmitInput input{.dag = l.issued.dag,
                        .edges = edges,
                        .source = l.source,
                        .program = l.program,
                        .tables = l.plan.tables,
                        .positions = positions,
                        .units = l.units,
                        .group_of_bucket = l.group_of_bucket,
                        .exchange_of_bucket = l.exchange_of_bucket,
                        .group_of_tie = l.group_of_tie};
  l.plan.edges = l.source.edges;
  for (std::size_t p = 0; p < l.issued.lists.size(); ++p) {
    EmittedList emitted = emit(input, static_cast<int>(p), l.issued.lists[p]);
    l.plan.tables.has_overlaps = l.plan.tables.has_overlaps || has_overlaps(emitted.list);
    l.plan.lists.push_back(std::move(emitted.list));
    l.peers.push_back(std::move(emitted.peers));
  }
}

/// Assigns each list to its ranks and resolves its peers.
void name_ranks(Lowering& l) {
  const TrainingDag& dag = l.issued.dag;
  std::map<Rank, RankPlan> ranks;
  for (std::size_t p = 0; p < dag.places.size(); ++p) {
    const std::vector<Rank>& place = dag.places[p];
    const int own = l.units / static_cast<int>(place.size());
    for (std::size_t i = 0; i < place.size(); ++i) {
      const int first = static_cast<int>(i) * own;
      RankPlan rank{.rank = place[i],
                    .list = static_cast<std::int32_t>(p),
                    .first_microbatch = first * dag.microbatches,
                    .peers = {}};
      for (const EmittedList::Peer& peer : l.peers[p]) {
        if (peer.place == kNone) {
          rank.peers.push_back(kDriver);
          continue;
        }
        const std::vector<Rank>& there = dag.places[static_cast<std::size_t>(peer.place)];
        const int units = l.units / static_cast<int>(there.size());
        rank.peers.push_back(there[static_cast<std::size_t>((first + peer.unit) / units)]);
      }
      ranks.emplace(rank.rank, std::move(rank));
    }
  }
  for (auto& [number, rank] : ranks) {
    l.plan.ranks.push_back(std::move(rank));
  }
}

void release_weights(Lowering& l) {
  for (RankList& list : l.plan.lists) {
    add_releases(list, l.plan.tables);
  }
}

void assign_slots(Lowering& l) {
  for (RankList& list : l.plan.lists) {
    assign_slots(list);
  }
}

void set_waits(Lowering& l) {
  for (RankList& list : l.plan.lists) {
    set_waits(list, l.plan.tables);
  }
}

/// Returns the list with only its transfers from and to the driver.
RankList driver_part(const RankList& list) {
  RankList part;
  std::ranges::copy_if(list.instructions,
                       std::back_inserter(part.instructions),
                       [](const Instruction& i) { return i.peer == kDriverPeer; });
  return part;
}

void list_feeds(Lowering& l) {
  std::vector<RankList> parts;  // by list; the ranks of a list read them once each
  std::ranges::transform(l.plan.lists, std::back_inserter(parts), driver_part);
  std::vector<const StageProgram*> programs;
  for (const StageProgram& program : l.program.partition.stages) {
    programs.push_back(&program);
  }
  for (const RankPlan& rank : l.plan.ranks) {
    const RankList& part = parts[static_cast<std::size_t>(rank.list)];
    std::ranges::copy(feeds_of(part, rank, l.plan.tables, programs),
                      std::back_inserter(l.plan.feeds));
    for (const Instruction& i : part.instructions) {
      if (i.op == Op::Send) {
        l.plan.results.push_back({rank.rank,
                                  i.edge,
                                  tagged_microbatch(l.plan.tables, rank, i),
                                  l.plan.edges[i.edge.index()].value});
      }
    }
  }
}

void prove(Lowering& l) {
  const std::vector<std::string> faults = verify(l.plan);
  if (!faults.empty()) {
    throw Error(Errc::PlanInvalid,
                fmt::format("the lowered plan breaks its rules: {}", fmt::join(faults, "; ")));
  }
}

constexpr NamedPass<Lowering> kPasses[] = {
    {"read the program", read_program},
    {"apply directives", apply_directives},
    {"put streams in order", put_in_order},
    {"make tables", make_tables},
    {"check lent weights", check_lent_weights},
    {"check divided weights", check_divided_weights},
    {"emit lists", emit_lists},
    {"name ranks", name_ranks},
    {"release weights", release_weights},
    {"assign slots", assign_slots},
    {"set waits", set_waits},
    {"list feeds", list_feeds},
    {"prove", prove},
};

}  // namespace

Lowered lower(const Program& program,
              const Strategy& strategy,
              const Layout& layout,
              bool training,
              const Plan* trained) {
  Lowering lowering{.program = program.compiled(),
                    .strategy = strategy,
                    .layout = layout,
                    .training = training,
                    .trained = trained};
  std::vector<PassTime> passes = run_passes(kPasses, lowering);
  return {.plan = std::move(lowering.plan),
          .issued = std::move(lowering.issued),
          .passes = std::move(passes)};
}

Plan lower_schedule(const Program& program,
                    const Schedule& schedule,
                    const Layout& layout,
                    bool training) {
  return lower(program, strategy_of(schedule, layout), layout, training).plan;
}

}  // namespace stagecraft
