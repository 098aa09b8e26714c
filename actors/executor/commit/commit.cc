#include "stagecraft/actors/executor/commit/commit.h"

#include <cmath>

#include <fmt/format.h>

#include "stagecraft/actors/executor/commit/clip.h"
#include "stagecraft/actors/executor/commit/non_finite.h"
#include "stagecraft/actors/executor/step/step_parts.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

Commit::Commit(const RankSetup& setup,
               Collective& collective,
               const Clock& clock,
               StepTimes& times,
               std::vector<StageRuntime>& stages,
               Mirror* mirror)
    : setup_(setup),
      collective_(collective),
      clock_(clock),
      times_(times),
      stages_(stages),
      mirror_(mirror),
      everybody_{.ranks = setup.ranks},
      sums_(group_sums(setup.train, stages)) {}

void Commit::begin_step(const StepOrder& order, const Sequence& tags) {
  order_ = order;
  tags_ = tags;
  voted_ = false;
  verdict_.reset();
  skips_ = false;
  if (order.program != kTraining) {
    return;
  }
  if (order.accumulated == 0) {  // keeps CT-2
    parts_.clear();
    for (StageRuntime& stage : stages_) {
      stage.buckets.begin_step();
    }
  }
  append(parts_, order.parts, setup_.train.tables->losses);
}

double Commit::divisor() const {
  return total_weight(parts_, setup_.train.tables->losses) * order_.loss_scale.factor;
}

UpdateNumbers Commit::numbers() const {
  return {.run = order_.step.value + 1 - order_.loss_scale.skipped, .groups = order_.group_numbers};
}

Deadline Commit::deadline() const {
  return clock_.now() + patience(setup_.options);
}

/// Returns whether it is of a gather of weights: a list of forwards has no other collectives.
bool Commit::gathers(const Instruction& collective) const {
  return order_.program != kTraining || gathers_weights(*setup_.train.tables, collective);
}

void Commit::start(const Instruction& collective) {
  const auto waiting = times_.pass(&RankTimes::waiting);
  GroupSum& sum = *sums_[static_cast<std::size_t>(collective.group)];
  if (gathers(collective)) {
    if (!skips_) {
      sum.start_gather(collective_, tags_, {.round = collective.round});
    }
  } else {
    sum.start(collective_, tags_, {.round = collective.round, .last_batch = order_.updates});
  }
}

void Commit::finish(const Instruction& collective) {
  const auto waiting = times_.pass(&RankTimes::waiting);
  GroupSum& sum = *sums_[static_cast<std::size_t>(collective.group)];
  if (gathers(collective)) {
    if (!skips_) {
      sum.finish_gather(deadline());
    }
  } else {
    sum.finish(deadline());
  }
}

void Commit::release(const Instruction& of) {
  sums_[static_cast<std::size_t>(of.group)]->release_weights();
}

void Commit::drop_sums() {
  for (const auto& sum : sums_) {
    if (sum != nullptr) {
      sum->drop();
      sum->release_weights();
    }
  }
}

void Commit::cast_vote(const std::vector<MicrobatchLoss>& losses) {
  refuse_non_finite_losses(losses);
  exchange_norms();
  Ballot ballot = make_ballot();
  if (mirror_ != nullptr) {
    ballot.mirrored = mirror_->newest_kept().value;
  }
  const auto waiting = times_.pass(&RankTimes::waiting);
  const VoteResult verdict = vote(collective_, everybody_, tags_, ballot, deadline());
  voted_ = true;
  if (mirror_ != nullptr) {
    mirror_->agreed(Submission(verdict.mirrored));
  }
  skips_ = !verdict.all_finite && order_.loss_scale.factor > 1.0;
  if (!skips_) {
    refuse_non_finite(stages_, verdict, order_.step);
  }
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

/// All are started before the first wait, so that no rank waits for another in a circle.
void Commit::exchange_norms() {
  {
    const auto computing = times_.compute(&RankTimes::update);
    for (const auto& sum : sums_) {
      if (sum != nullptr) {
        sum->start_norms(collective_, tags_);
      }
    }
  }
  const auto waiting = times_.pass(&RankTimes::waiting);
  for (const auto& sum : sums_) {
    if (sum != nullptr) {
      sum->finish_norms(deadline());
    }
  }
}

Ballot Commit::make_ballot() {
  const auto computing = times_.compute(&RankTimes::update);
  Ballot ballot{.model_parameters = setup_.model_parameters, .rank = setup_.rank()};
  const double divisor = this->divisor();
  const double most = largest_applied(order_.clip, setup_.options.clip_value);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    // Other copies have the same gradients, but for their shards.
    const bool whole = setup_.train.stage(s).copy == 0 && setup_.train.rank.first_microbatch == 0;
    const std::vector<SquaredNorm> norms =
        stages_[s].buckets.squared_norms(divisor, whole, numbers(), most);
    ballot.squared_norms.insert(ballot.squared_norms.end(), norms.begin(), norms.end());
  }
  return ballot;
}

void Commit::update(StageRuntime& stage, std::size_t bucket) {
  const auto computing = times_.compute(&RankTimes::update);
  if (skips_) {
    stage.buckets.keep_gradients(bucket, divisor());
    stage.buckets.drop_share(bucket);
    return;
  }
  stage.buckets.update(bucket,
                       order_.learning_rate,
                       {.weight = divisor(),
                        .clip = clip_scale(order_.clip, verdict_->total_norm),
                        .most = setup_.options.clip_value},
                       numbers());
}

}  // namespace stagecraft
