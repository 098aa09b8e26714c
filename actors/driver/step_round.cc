#include "stagecraft/actors/driver/step_round.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/driver/recovery_advice.h"

namespace stagecraft {
namespace {

bool same_everywhere(Errc code) {
  return code == Errc::NonFinite;
}

/// Returns whether all ranks learn of the error. The vote, which all ranks have entered, finds a
/// gradient that is not finite: each rank learns of it, and some can say more than others. A loss
/// that is not finite is found before the vote.
bool is_found_by_all(const Error& error) {
  return same_everywhere(error.code()) && !error.context().microbatch;
}

/// Returns whether the other ranks finish the step without the one that reports the error.
/// WorkerLost comes from an update: all ranks have voted by then, and no rank waits for another
/// after the vote, except for weights of its shard. An abort could stop one that has not received
/// the result yet, and its weights would stay behind.
bool others_finish(const Error& error, bool shards) {
  return is_found_by_all(error) || (error.code() == Errc::WorkerLost && !shards);
}

/// Weighs errors: the one with the highest weight is the primary. 2 for a cause, less for a
/// consequence.
int weight(Errc code) {
  return code == Errc::WorkerAborted ? 0 : family(code) == ErrorFamily::Transport ? 1 : 2;
}

/// Orders reports of one error: those that name the stage come first.
std::pair<bool, Rank> order_of_reports(Rank reporter, const Error& error) {
  return {!error.context().stage.has_value(), reporter};
}

double bubble_of(const std::vector<RankTimes>& ranks, double seconds) {
  double computing = 0.0;
  for (const RankTimes& t : ranks) {
    computing += t.forward + t.backward + t.update;
  }
  const double whole = static_cast<double>(ranks.size()) * seconds;
  return whole > 0.0 ? (whole - computing) / whole : 0.0;
}

}  // namespace

StepRound::StepRound(Submission submission,
                     Step step,
                     bool training,
                     int ranks,
                     bool mirrored,
                     PartRuns parts,
                     bool updates,
                     bool shards)
    : submission_(submission),
      step_(step),
      training_(training),
      mirrored_(mirrored),
      parts_(std::move(parts)),
      updates_(updates),
      shards_(shards),
      answers_(static_cast<std::size_t>(ranks)),
      settled_(static_cast<std::size_t>(ranks), false),
      missing_(ranks) {}

void StepRound::answered(StepReport done) {
  if (done.submission != submission_ || done.rank.index() >= settled_.size() ||
      settled_[done.rank.index()]) {
    return;  // keeps SR-1
  }
  settled_[done.rank.index()] = true;
  --missing_;
  if (!done.error.empty()) {
    const Error error = to_error(done.error);
    needs_abort_ = needs_abort_ || !others_finish(error, shards_);
    note(done.rank, error);
  }
  answers_[done.rank.index()] = std::move(done);
}

void StepRound::gave_up(Rank rank, const Error& why) {
  if (settled_[rank.index()]) {
    return;
  }
  settled_[rank.index()] = true;
  --missing_;
  cannot_succeed_ = true;
  needs_abort_ = true;
  note(rank, why);
}

void StepRound::note(Rank rank, const Error& error) {
  if (error.code() == Errc::WorkerLost && !lost_) {
    lost_ = error;
  }
  const bool better =
      !primary_ || weight(error.code()) > weight(primary_->code()) ||
      (primary_rank_ && same_everywhere(error.code()) && same_everywhere(primary_->code()) &&
       order_of_reports(rank, error) < order_of_reports(*primary_rank_, *primary_));
  if (better) {
    primary_ = error;
    primary_->with({.rank = rank, .step = step_});
    primary_rank_ = rank;
  }
}

void StepRound::blame(const Error& why) {
  needs_abort_ = true;
  if (!primary_ || lacks_a_cause()) {
    primary_ = why;
  }
}

bool StepRound::lacks_a_cause() const {
  return primary_ && family(primary_->code()) == ErrorFamily::Transport;
}

std::vector<Rank> StepRound::silent() const {
  std::vector<Rank> ranks;
  for (std::size_t r = 0; r < settled_.size(); ++r) {
    if (!settled_[r]) {
      ranks.emplace_back(r);
    }
  }
  return ranks;
}

std::optional<Error> StepRound::lost() const {
  if (lost_) {
    return lost_;
  }
  const auto has_committed = [](const std::optional<StepReport>& a) { return a && a->committed; };
  const auto count = std::ranges::count_if(answers_, has_committed);
  if (count == 0 || count == std::ssize(answers_)) {
    return std::nullopt;  // keeps SR-3
  }
  return Error(Errc::WorkerLost,
               fmt::format("{} of {} ranks have updated their weights in step {} and the others "
                           "have not",
                           count,
                           answers_.size(),
                           step_.value))
      .advise(std::string(recovery_advice(mirrored_)));
}

Error StepRound::failure() const {
  const std::optional<Error> lost = this->lost();
  if (!primary_) {
    return *lost;
  }
  Error why = *primary_;
  if (lost && why.code() != Errc::WorkerLost) {
    why.advise(std::string(recovery_advice(mirrored_)));
    if (why.cause() == nullptr) {
      why.because(*lost);
    }
  }
  return why;
}

StepResult StepRound::result(std::vector<std::vector<InstructionTime>> timelines,
                             double seconds) const {
  StepResult result{.step = step_.value + (updates() ? 1 : 0),
                    .seconds = seconds,
                    .timelines = std::move(timelines)};
  std::map<Microbatch, double> losses;
  for (const auto& answer : answers_) {
    result.ranks.push_back(answer->times);
    result.gradient_norm = answer->gradient_norm;
    for (const auto& [name, numbers] : answer->counts) {
      add_count(result.counts, name, numbers);
    }
    for (const auto& [microbatch, loss] : answer->losses) {
      losses[microbatch] = loss;
    }
  }
  for (const auto& [microbatch, loss] : losses) {
    result.losses.push_back(loss);
  }
  result.skipped = skipped_by_some().value_or(false);
  result.mean_loss = mean_loss(result.losses, parts_);
  result.bubble = bubble_of(result.ranks, seconds);
  return result;
}

std::optional<bool> StepRound::skipped_by_some() const {
  for (const std::optional<StepReport>& answer : answers_) {
    if (answer && answer->committed) {
      return answer->skipped;
    }
  }
  return std::nullopt;
}

bool StepRound::succeeded() const {
  return !lost() &&
         std::ranges::all_of(answers_, [](const auto& a) { return a && a->error.empty(); });
}

}  // namespace stagecraft
