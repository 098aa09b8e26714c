#include "stagecraft/actors/executor/run/rank_programs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/executor/setup/verify_setup.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/evaluation_chunks.h"
#include "stagecraft/compiler/shapes/other_shape.h"
#include "stagecraft/compiler/stage/division.h"

namespace stagecraft {
namespace {

/// Returns whether other processes read gradients, and weights of shards, where they lie.
bool sums_with_other_processes(const PlanTables& tables, const Transport& transport) {
  return std::ranges::any_of(tables.groups, [&](const PlanGroup& group) {
    return group.kind == PlanGroup::Kind::Copies &&
           std::ranges::any_of(group.members(transport.self()),
                               [&](Rank member) { return !transport.hands_over(member); });
  });
}

}  // namespace

RankPrograms::RankPrograms(const RankSetup& setup,
                           const c10::Device& place,
                           std::shared_ptr<Transport> transport,
                           std::shared_ptr<WaitBoard> board)
    : setup_(setup),
      place_(place),
      transport_(std::move(transport)),
      board_(std::move(board)),
      trained_(add_training()) {}

std::unique_ptr<LoadedPlan> RankPrograms::load(const PlanShare& share,
                                               const StagePrograms& programs) const {
  return std::make_unique<LoadedPlan>(
      share, programs, transport_, board_, patience(setup_.options));
}

std::vector<StageRuntime>& RankPrograms::add_training() {
  // The list comes first: a rank whose list is refused then allocates no weights.
  LoadedProgram training{.shapes = {}, .plan = load(setup_.train, setup_.stages)};
  BucketOptions options = bucket_options(setup_.options);
  options.device = place_;
  if (place_.is_cpu() && sums_with_other_processes(*setup_.train.tables, *transport_)) {
    options.lent_memory = [this](std::int64_t elements, at::ScalarType dtype) {
      return transport_->lendable(elements, dtype);
    };
  }
  for (std::size_t s = 0; s < setup_.stages.size(); ++s) {
    training.shapes[0].stages.emplace_back(
        *setup_.stages[s], setup_.optimizer, options, setup_.buckets_of(s));
  }
  return programs_.emplace(kTraining, std::move(training)).first->second.stages();
}

void RankPrograms::add(RankShape given) {
  const auto known = programs_.find(given.program);
  const bool new_program = given.number == 0;
  const auto same_stage = [](const auto& a, const auto& b) { return a->id == b->id; };
  if (given.rank != setup_.rank() || given.number < 0 || given.program < kTraining ||
      (new_program ? given.program == kTraining : known == programs_.end()) ||
      !std::ranges::equal(setup_.stages, given.stages, same_stage)) {
    refuse("it has the stages of another rank, or belongs to no program that this rank knows");
  }
  if (new_program) {
    add_evaluation(std::move(given));
  } else {
    add_shape(known->second, std::move(given), misfit);
  }
}

void RankPrograms::add_evaluation(RankShape given) {
  const std::int32_t number = given.program;
  if (const auto faults = verify(given.share, setup_); !faults.empty()) {
    refuse(faults.front());
  }
  LoadedProgram added;
  add_shape(added, std::move(given), misfit_of_evaluation);
  const RankShape& received = added.shapes.at(0).received;
  added.plan = load(received.share, received.stages);
  programs_.erase(number);  // free the old program's memory first
  programs_.emplace(number, std::move(added));
}

/// Refuses stages of an evaluation with weights that its list does not gather for their chunks
/// (P-12): their memory would not be there.
void RankPrograms::require_gathered(const PlanTables& evaluation,
                                    const StagePrograms& stages) const {
  const PlanTables& training = *setup_.train.tables;
  for (const PlanGroup& group : training.groups) {
    if (!group.splits_weights()) {
      continue;
    }
    const auto bucket = static_cast<std::size_t>(group.bucket);
    const ChunkRange gathered =
        evaluation.groups.empty() ? ChunkRange{0, 0} : evaluation.buckets[bucket].chunks;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const StageId stage = setup_.train.list->stages[s];
      if (std::ranges::find(group.stages, stage) == group.stages.end()) {
        continue;
      }
      const ChunkRange users =
          users_of(*stages[s], *setup_.stages[s], training.buckets[bucket].chunks);
      if (users.count > 0 && !(gathered.has(users.first) && gathered.has(users.end() - 1))) {
        refuse(
            fmt::format("stage {} uses weights that the ranks split, in chunks for which its list "
                        "does not gather them",
                        stage.value));
      }
    }
  }
}

void RankPrograms::add_shape(LoadedProgram& to, RankShape given, Misfit reason) const {
  const std::vector<StageRuntime>& like = given.number == 0 ? trained_ : to.stages();
  for (std::size_t s = 0; s < like.size(); ++s) {
    const StageProgram& stage = *like[s].program;
    if (const std::string found = reason(stage, *given.stages[s]); !found.empty()) {
      refuse(fmt::format("stage {} {}", stage.id.value, found));
    }
    for (const BucketCut& cut : setup_.buckets_of(s)) {
      if (cut.is_divided() && given.program == kTraining) {
        const std::string why = misfit_of_division(*given.stages[s], cut.chunks.first, cut.parts);
        if (!why.empty()) {
          refuse(fmt::format("chunk {} of stage {} {}", cut.chunks.first, stage.id.value, why));
        }
      }
      if (cut.lends_weights() && given.program == kTraining &&
          !read_beyond(*given.stages[s], cut.chunks.first, cut.chunks.end()).empty()) {
        refuse(
            fmt::format("stage {} uses weights in other chunks, and copies share them "
                        "(shard_params)",
                        stage.id.value));
      }
    }
  }
  if (given.program != kTraining) {
    require_gathered(given.number == 0 ? *given.share.tables : *to.plan->bound.share->tables,
                     given.stages);
  }
  LoadedShape& shape = to.shapes[given.number];
  shape.stages.clear();  // first: they view the old shape's programs
  shape.received = std::move(given);
  for (std::size_t s = 0; s < like.size(); ++s) {
    shape.stages.emplace_back(*shape.received.stages[s], like[s]);
  }
}

bool RankPrograms::knows(std::int32_t program, std::int32_t shape) const {
  const auto known = programs_.find(program);
  return known != programs_.end() && known->second.shapes.contains(shape);
}

void RankPrograms::refuse(const std::string& what) const {
  throw Error(Errc::PlanInvalid,
              fmt::format("stages for another shape or an evaluation do not fit rank {}: {}",
                          setup_.rank().value,
                          what));
}

}  // namespace stagecraft
