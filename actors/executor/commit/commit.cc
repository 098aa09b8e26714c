#include "stagecraft/actors/executor/commit/commit.h"

#include <cmath>

#include <fmt/format.h>

#include "stagecraft/actors/executor/commit/clip.h"
#include "stagecraft/actors/executor/commit/non_finite.h"
#include "stagecraft/actors/executor/commit/replica_buffers.h"
#include "stagecraft/actors/executor/commit/replica_sum.h"
#include "stagecraft/actors/executor/step/step_parts.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr std::int32_t kFirstGroup = 1;  // group 0 is all ranks, for the vote

}  // namespace

Commit::Commit(const RankSetup& setup,
               Collective& collective,
               StepTimes& times,
               std::vector<StageRuntime>& stages,
               Mirror* mirror)
    : setup_(setup),
      collective_(collective),
      times_(times),
      stages_(stages),
      mirror_(mirror),
      everybody_{.ranks = setup.ranks} {
  for (const Tie& tie : setup.ties) {
    const auto number = static_cast<std::int32_t>(ties_.size() + setup.replica_groups.size());
    ties_.emplace_back(tie, setup.rank, stages, kFirstGroup + number);
  }
}

void Commit::begin_step(const StepOrder& order, const Sequence& tags) {
  order_ = order;
  tags_ = tags;
  verdict_.reset();
  if (order.program != kTraining) {
    return;
  }
  if (order.accumulated == 0) {  // keeps CT-2
    parts_.clear();
    for (StageRuntime& stage : stages_) {
      stage.bucket.begin_step();
    }
  }
  append(parts_, order.parts, setup_.losses);
}

Deadline Commit::deadline() const {
  return std::chrono::steady_clock::now() + patience(setup_.options);
}

void Commit::sum(const Instruction& collective) {
  const auto waiting = times_.pass(&RankTimes::waiting);
  if (collective.collective == CollectiveKind::AllGather) {
    ties_[static_cast<std::size_t>(collective.group)].run(collective_, tags_, deadline());
  } else {
    sum_copies(collective.group);
  }
}

void Commit::sum_copies(int group) {
  std::vector<const StageRuntime*> mine;
  std::vector<const Bucket*> buckets;
  const ReplicaGroup& replicas = setup_.replica_groups[static_cast<std::size_t>(group)];
  for (const StageId id : replicas.stages) {
    for (const StageRuntime& stage : stages_) {
      if (stage.program->id == id) {
        mine.push_back(&stage);
        buckets.push_back(&stage.bucket);
      }
    }
  }
  const Group members{.ranks = replicas.ranks, .id = kFirstGroup + group};
  sum_over_replicas(collective_, members, buckets, tags_, deadline());
  Sequence behind = tags_;
  behind.number = static_cast<std::int32_t>(buckets.front()->flat_gradients().size());
  take_buffers_of_first(collective_, members, mine, behind, deadline());
}

void Commit::cast_vote(const std::vector<MicrobatchLoss>& losses) {
  refuse_non_finite_losses(losses);
  Ballot ballot = make_ballot();
  if (mirror_ != nullptr) {
    ballot.mirrored = mirror_->newest_kept().value;
  }
  const auto waiting = times_.pass(&RankTimes::waiting);
  const VoteResult verdict = vote(collective_, everybody_, tags_, ballot, deadline());
  if (mirror_ != nullptr) {
    mirror_->agreed(Submission(verdict.mirrored));
  }
  refuse_non_finite(stages_, verdict, order_.step);
  verdict_ = verdict;
}

void Commit::refuse_non_finite_losses(const std::vector<MicrobatchLoss>& losses) const {
  for (const auto& [m, loss] : losses) {
    if (std::isfinite(loss)) {
      continue;
    }
    ErrorContext place{.microbatch = m, .step = order_.step};
    for (const StageRuntime& stage : stages_) {
      if (stage.program->loss != kNoValue) {
        place.stage = stage.program->id;
      }
    }
    throw Error(
        Errc::NonFinite,
        fmt::format("the loss of microbatch {} is {}; lower the learning rate, or clip gradients",
                    m.value,
                    loss))
        .with(place);
  }
}

Ballot Commit::make_ballot() {
  const auto computing = times_.compute(&RankTimes::update);
  Ballot ballot{.model_parameters = setup_.model_parameters, .rank = setup_.rank};
  const double weight = total_weight(parts_, setup_.losses);
  for (StageRuntime& stage : stages_) {
    if (stage.program->replica == 0) {  // other replicas have the same gradients
      const std::vector<SquaredNorm> norms = stage.bucket.squared_norms(weight);
      ballot.squared_norms.insert(ballot.squared_norms.end(), norms.begin(), norms.end());
    }
  }
  return ballot;
}

void Commit::update(StageRuntime& stage) {
  const auto computing = times_.compute(&RankTimes::update);
  stage.bucket.update(order_.learning_rate,
                      {.weight = total_weight(parts_, setup_.losses),
                       .clip = clip_scale(setup_.options.clip, verdict_->total_norm)},
                      order_.step.value + 1);
}

}  // namespace stagecraft
