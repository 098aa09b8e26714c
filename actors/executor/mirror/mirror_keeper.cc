#include "stagecraft/actors/executor/mirror/mirror_keeper.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr Submission kNoRound{-1}, kFailedRound{-2};

bool has(const std::vector<std::int64_t>& states, std::int64_t updates) {
  return std::ranges::find(states, updates) != states.end();
}

std::string kept_text(const std::vector<std::int64_t>& states) {
  return states.empty() ? "nothing" : fmt::format("{} updates", fmt::join(states, " and "));
}

std::string stock_text(const std::vector<MirrorStock>& stocks) {
  std::string text;
  for (std::size_t r = 0; r < stocks.size(); ++r) {
    const MirrorStock& keeper = stocks[(r + 1) % stocks.size()];
    text += fmt::format("{}{}: {} itself, {} in its keeper",
                        text.empty() ? "" : "; ",
                        peer_name(Rank(r)),
                        kept_text(stocks[r].own),
                        kept_text(keeper.kept));
  }
  return text;
}

using NewestFirst = std::set<std::int64_t, std::greater<>>;

/// Returns the newest state, at most `most`, of which every rank and every keeper has its copy, but
/// for new ranks, which have none; `most` if there is none.
std::int64_t newest_secure(const std::vector<MirrorStock>& stocks,
                           const NewestFirst& candidates,
                           std::int64_t most) {
  const auto is_secure = [&](std::int64_t updates) {
    return updates <= most && std::ranges::all_of(stocks, [updates](const MirrorStock& stock) {
             const bool is_new = stock.own.empty() && stock.kept.empty();
             return is_new || (has(stock.own, updates) && has(stock.kept, updates));
           });
  };
  const auto found = std::ranges::find_if(candidates, is_secure);
  return found == candidates.end() ? most : *found;
}

}  // namespace

void MirrorKeeper::restart(std::optional<std::int64_t> kept) {
  std::optional<Round> left;
  if (kept) {
    // Belongs to no round: a ballot with this number agrees to none.
    left = Round{.id = kNoRound, .updates = *kept, .own = own(*kept), .kept = this->kept(*kept)};
  }
  settled_ = std::move(left);
  under_way_.reset();
}

void MirrorKeeper::begin(Submission round, std::int64_t updates, at::Tensor own) {
  SC_CHECK(!under_way_, "one round of mirroring is under way at a time");
  under_way_ = Round{.id = round, .updates = updates, .own = std::move(own), .kept = {}};
}

void MirrorKeeper::arrived(at::Tensor copy) {
  SC_CHECK(under_way_.has_value(), "a copy belongs to the round under way");
  under_way_->kept = std::move(copy);
}

void MirrorKeeper::failed() {
  SC_CHECK(under_way_.has_value(), "a round that fails is under way");
  under_way_->has_failed = true;
}

Submission MirrorKeeper::newest_kept() const {
  if (under_way_ && under_way_->has_failed) {
    return kFailedRound;
  }
  for (const auto* round : {&under_way_, &settled_}) {
    if (*round && (*round)->kept.defined()) {
      return (*round)->id;
    }
  }
  return kNoRound;
}

bool MirrorKeeper::agreed(Submission oldest) {
  if (oldest == kFailedRound) {
    under_way_.reset();
  } else if (under_way_ && oldest >= under_way_->id) {
    settled_ = std::exchange(under_way_, std::nullopt);
    return true;
  }
  return false;
}

std::vector<std::int64_t> MirrorKeeper::own_states() const {
  return states(&Round::own);
}

std::vector<std::int64_t> MirrorKeeper::kept_states() const {
  return states(&Round::kept);
}

at::Tensor MirrorKeeper::own(std::int64_t updates) const {
  return find(updates, &Round::own);
}

at::Tensor MirrorKeeper::kept(std::int64_t updates) const {
  return find(updates, &Round::kept);
}

std::vector<std::int64_t> MirrorKeeper::states(at::Tensor Round::*copy) const {
  std::set<std::int64_t> found;
  for (const auto* round : {&settled_, &under_way_}) {
    if (*round && (**round.*copy).defined()) {
      found.insert((*round)->updates);
    }
  }
  return {found.begin(), found.end()};
}

at::Tensor MirrorKeeper::find(std::int64_t updates, at::Tensor Round::*copy) const {
  for (const auto* round : {&settled_, &under_way_}) {
    if (*round && (*round)->updates == updates && (**round.*copy).defined()) {
      return **round.*copy;
    }
  }
  return {};
}

RecoveryPoint choose_recovery(const std::vector<MirrorStock>& stocks) {
  const auto keeper_of = [&](std::size_t r) -> const MirrorStock& {
    return stocks[(r + 1) % stocks.size()];
  };
  NewestFirst candidates;
  for (const MirrorStock& stock : stocks) {
    candidates.insert(stock.own.begin(), stock.own.end());
  }
  for (const std::int64_t updates : candidates) {
    RecoveryPoint point{.updates = updates, .lost = {}};
    bool whole = true;
    for (std::size_t r = 0; r < stocks.size(); ++r) {
      point.lost.push_back(!has(stocks[r].own, updates));
      whole = whole && (!point.lost.back() || has(keeper_of(r).kept, updates));
    }
    if (whole) {
      point.kept = newest_secure(stocks, candidates, updates);
      return point;
    }
  }
  throw Error(
      Errc::WorkerLost,
      fmt::format("there is no state of which all ranks have a copy, as after the loss of a "
                  "rank and its keeper, the next one: load a checkpoint. Copies are kept "
                  "of: {}",
                  stock_text(stocks)));
}

}  // namespace stagecraft
