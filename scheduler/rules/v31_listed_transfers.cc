/// V31 and V35 if a file lists sends and receives: compares them with the transfers that the tasks
/// need.
///
/// V31: every value that crosses rows is sent once, after it is made, and received once, before it
/// is needed; and the values from one row to another are received in the order in which they are
/// sent. match_transfers() judges everything but the order: an action on a row that does not exist
/// is V02, of a stage or microbatch that does not exist V04 or V05, on a row that does not run its
/// stage V07, and one listed twice V08.
/// V35: a row queues its actions in the order of the file, on one stream unless the options require
/// one per peer and direction. An action starts after the task before it; a task waits only for its
/// inputs. Checked only if V29 and V31 find nothing, because either would appear here again.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/match_transfers.h"
#include "stagecraft/scheduler/rules/parts/rule_input.h"
#include "stagecraft/scheduler/rules/v35_streams.h"

namespace stagecraft::rules {
namespace {

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// Checks the order in which a file's actions are issued.
class ListedOrder {
 public:
  ListedOrder(const RuleInput& in, const std::vector<ListedTransfer>& transfers, Violations& out)
      : in_(in), actions_(in.options.communication), transfers_(transfers), out_(out) {}
  void check_order();
  void check_streams(TransferStreams streams);

 private:
  [[nodiscard]] const CommAction& send(const ListedTransfer& t) const {
    return actions_[index(t.send)];
  }
  [[nodiscard]] const CommAction& receive(const ListedTransfer& t) const {
    return actions_[index(t.receive)];
  }

  const RuleInput& in_;
  std::span<const CommAction> actions_;
  const std::vector<ListedTransfer>& transfers_;
  Violations& out_;
};

void ListedOrder::check_order() {
  std::vector<const ListedTransfer*> by_send;
  for (const ListedTransfer& t : transfers_) {
    if (t.in_time) {
      by_send.push_back(&t);
    }
  }
  std::ranges::sort(by_send, {}, [](const ListedTransfer* t) { return t->send; });
  // The latest received so far for each pair of rows; silent after a report of the pair.
  struct Latest {
    const ListedTransfer* transfer = nullptr;
    bool silent = false;
  };
  std::map<std::pair<int, int>, Latest> pairs;
  for (const ListedTransfer* t : by_send) {
    Latest& latest = pairs[{send(*t).row, receive(*t).row}];
    if (latest.transfer == nullptr || t->receive > latest.transfer->receive) {
      latest.transfer = t;
    } else if (!latest.silent) {
      latest.silent = true;
      const ListedTransfer& first = *latest.transfer;
      Violation& v = report_action(
          in_,
          "V31",
          receive(*t),
          fmt::format("row {} sends {} before {}, but row {} receives them in the opposite order, "
                      "and a channel keeps its order; exchange {} and {} on row {}",
                      send(*t).row,
                      to_string(send(first)),
                      to_string(send(*t)),
                      receive(*t).row,
                      to_string(receive(*t)),
                      to_string(receive(first)),
                      receive(*t).row),
          out_);
      v.task = t->value.needed_by;
      v.missing = to_string(receive(first));
      v.cause.clear();  // one for each pair of rows as it is
      const Entry& made = in_.tasks.entry(t->value.from);
      v.cells.emplace_back(made.row, made.column);
    }
  }
}

void ListedOrder::check_streams(TransferStreams streams) {
  std::vector<Rendezvous> ends;
  ends.reserve(transfers_.size());
  for (const ListedTransfer& t : transfers_) {
    ends.push_back({.transfer = t.value,
                    .sent_after = entry_before(in_, send(t)),
                    .received_after = entry_before(in_, receive(t)),
                    .send_place = t.send,
                    .receive_place = t.receive});
  }
  std::optional<Violation> v = find_blocked_streams(in_, ends, streams, [&](std::size_t i) {
    const ListedTransfer& t = transfers_[i];
    return fmt::format("{} with {}", to_string(send(t)), to_string(receive(t)));
  });
  if (v) {
    v->message = fmt::format(
        "in the order of the file the rows wait for each other forever: {}; move one of these "
        "receives later or one of these sends earlier, or give every peer and direction a stream "
        "of its own",
        v->missing);
    out_.push_back(std::move(*v));
  }
}

}  // namespace

void check_listed_transfers(const RuleInput& in, Violations& out) {
  if (!lists_transfers(in.options)) {
    return;
  }
  const std::vector<ListedTransfer> transfers = match_transfers(in, out);
  ListedOrder order(in, transfers, out);
  order.check_order();
  const bool settled = std::ranges::none_of(
      out, [](const Violation& v) { return v.rule == "V29" || v.rule == "V31"; });
  if (settled && std::ranges::all_of(transfers, &ListedTransfer::in_time)) {
    order.check_streams(in.options.ordered_transfers.value_or(TransferStreams::OnePerRank));
  }
}

}  // namespace stagecraft::rules
