/// V31 and V35 if no file lists transfers: they follow from the tasks.
///
/// V31: between two rows, values are awaited in the order in which they are made.
/// V35: a row queues its sends as it makes the values and its receives as it needs them.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/parts/rule_input.h"
#include "stagecraft/scheduler/rules/parts/transfer.h"
#include "stagecraft/scheduler/rules/v35_streams.h"

namespace stagecraft::rules {
namespace {

std::string name(const Transfer& t) {
  return fmt::format("{} (for {})", to_string(t.made), to_string(t.needed_by));
}

void check_crossing(const RuleInput& in, const std::vector<Transfer>& transfers, Violations& out) {
  // The latest made so far for each pair of rows; true after a report of the pair.
  std::map<std::pair<int, int>, std::pair<const Transfer*, bool>> latest;
  for (const Transfer& t : transfers) {
    const Entry& from = in.tasks.entry(t.from);
    const Entry& to = in.tasks.entry(t.to);
    auto& [previous, silent] = latest.try_emplace({from.row, to.row}, nullptr, false).first->second;
    if (previous != nullptr && t.from < previous->from && !silent) {
      silent = true;
      Violation v = at("V31", to, t.needed_by);
      v.missing = to_string(t.made);
      v.cells.emplace_back(from.row, from.column);
      for (const int e : {previous->from, previous->to}) {
        v.cells.emplace_back(in.tasks.entry(e).row, in.tasks.entry(e).column);
      }
      v.message = fmt::format(
          "row {} makes {} before {}, but row {} needs them in the opposite order; one ordered "
          "channel from row {} to row {} cannot serve both, so exchange them on one of the rows",
          from.row,
          name(t),
          name(*previous),
          to.row,
          from.row,
          to.row);
      out.push_back(std::move(v));
    }
    if (previous == nullptr || t.from > previous->from) {
      previous = &t;
    }
  }
}

void check_streams(const RuleInput& in,
                   const std::vector<Transfer>& transfers,
                   TransferStreams streams,
                   Violations& out) {
  std::vector<Rendezvous> ends;
  ends.reserve(transfers.size());
  for (const Transfer& t : transfers) {
    // In a queue, an end comes after the entry that sends, or before the one that receives.
    ends.push_back({.transfer = t,
                    .sent_after = t.from,
                    .send_place = 2 * t.from + 1,
                    .receive_place = 2 * t.to});
  }
  std::optional<Violation> v = find_blocked_streams(in, ends, streams, [&](std::size_t i) {
    return fmt::format("transfer of {}", name(transfers[i]));
  });
  if (v) {
    v->message = fmt::format(
        "transfers wait for each other forever on their streams: {}; give every peer and direction "
        "a stream of its own, or reorder one of these rows",
        v->missing);
    out.push_back(std::move(*v));
  }
}

}  // namespace

void check_transfers(const RuleInput& in, Violations& out) {
  if (!in.options.ordered_transfers || lists_transfers(in.options)) {
    return;
  }
  const std::vector<Transfer> transfers = transfers_of(in);
  check_crossing(in, transfers, out);
  if (std::ranges::find(out, "V29", &Violation::rule) == out.end()) {
    check_streams(in,
                  transfers,
                  *in.options.ordered_transfers,
                  out);  // rows that already wait would wait here again
  }
}

}  // namespace stagecraft::rules
