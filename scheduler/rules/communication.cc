/// The sends and receives that a file lists, against those that its tasks need.
///
/// V31: every value that crosses rows is sent once, after it is made, and received once, before it
/// is needed, and the values from one row to another are received in the order in which they are
/// sent. An action on a row that does not run its stage is V07, one listed twice V08, one of a
/// stage or microbatch that does not exist V04 or V05.
/// V35: with a send and its receive as one rendezvous, the actions of a row in the order of the
/// file and one stream per row (or one per peer and direction, where asked for), all rows still run
/// to their end. An action starts after the task before it; a task waits only for what it needs.
/// Looked for when the rows run by themselves (V29) and V31 finds nothing: either would show here
/// again.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/listed_transfers.h"
#include "stagecraft/scheduler/rules/rules.h"
#include "stagecraft/scheduler/rules/shortest_cycle.h"

namespace stagecraft::rules {
namespace {

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

/// The order in which a file's actions are issued.
class ListedOrder {
 public:
  ListedOrder(const Input& in, const std::vector<ListedTransfer>& transfers, Violations& out)
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
  [[nodiscard]] Digraph rendezvous_graph(TransferStreams streams) const;
  void report_cycle(const std::vector<int>& cycle);

  const Input& in_;
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
  // The latest received so far for each pair of rows; silent once the pair has been reported.
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
          fmt::format(
              "row {} sends {} before {}, but row {} receives them the other way round, and a "
              "channel keeps its order; exchange {} and {} on row {}",
              send(*t).row,
              to_string(send(first)),
              to_string(send(*t)),
              receive(*t).row,
              to_string(receive(*t)),
              to_string(receive(first)),
              receive(*t).row),
          out_);
      v.task = t->needed_by;
      v.missing = to_string(receive(first));
      v.cause.clear();  // one for each pair of rows as it is
      const Entry& made = in_.tasks.entry(t->from);
      v.cells.emplace_back(made.row, made.column);
    }
  }
}

/// Vertices: the entries, then one per transfer.
Digraph ListedOrder::rendezvous_graph(TransferStreams streams) const {
  const int entries = static_cast<int>(in_.tasks.entries().size());
  std::vector<std::pair<int, int>> edges;
  for (int e = 1; e < entries; ++e) {
    if (in_.tasks.entry(e).row == in_.tasks.entry(e - 1).row) {
      edges.emplace_back(e - 1, e);
    }
  }
  std::vector<int> transfer_of(actions_.size(), ListedTransfer::kNone);
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const ListedTransfer& t = transfers_[i];
    const int vertex = entries + static_cast<int>(i);
    transfer_of[index(t.send)] = vertex;
    transfer_of[index(t.receive)] = vertex;
    edges.emplace_back(vertex, t.to);
    edges.emplace_back(entry_before(in_, send(t)), vertex);
    if (const int before = entry_before(in_, receive(t)); before != ListedTransfer::kNone) {
      edges.emplace_back(before, vertex);
    }
  }
  std::map<std::pair<int, int>, int> last;  // transfer of a row's stream
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    if (transfer_of[i] == ListedTransfer::kNone) {
      continue;
    }
    const ListedTransfer& t = transfers_[index(transfer_of[i] - entries)];
    const bool sending = t.send == static_cast<int>(i);
    const int stream = streams == TransferStreams::OnePerRank ? 0
                       : sending                              ? 2 * receive(t).row
                                                              : 2 * send(t).row + 1;
    const auto [previous, first] = last.try_emplace({actions_[i].row, stream}, transfer_of[i]);
    if (!first) {
      edges.emplace_back(previous->second, transfer_of[i]);
      previous->second = transfer_of[i];
    }
  }
  return digraph(entries + static_cast<int>(transfers_.size()), edges);
}

void ListedOrder::report_cycle(const std::vector<int>& cycle) {
  const auto entries = in_.tasks.entries().size();
  Violation v;
  v.rule = "V35";
  std::vector<std::string> steps;
  for (const int vertex : cycle) {
    const bool is_entry = index(vertex) < entries;
    const ListedTransfer* t = is_entry ? nullptr : &transfers_[index(vertex) - entries];
    const Entry& entry = in_.tasks.entry(is_entry ? vertex : t->from);
    v.cells.emplace_back(entry.row, entry.column);
    v.cycle.push_back(is_entry ? entry.cell->tasks().front() : t->made);
    steps.push_back(is_entry
                        ? to_string(*entry.cell)
                        : fmt::format("{} with {}", to_string(send(*t)), to_string(receive(*t))));
  }
  v.missing = circle(steps);
  v.row = v.cells.front().first;
  v.column = v.cells.front().second;
  v.task = v.cycle.front();
  v.message = fmt::format(
      "in the order of the file the rows wait for each other for ever: {}; move one of these "
      "receives later or one of these sends earlier, or give every peer and direction a stream of "
      "its own",
      v.missing);
  out_.push_back(std::move(v));
}

void ListedOrder::check_streams(TransferStreams streams) {
  constexpr std::size_t kSearches = 256;
  const std::vector<int> cycle = shortest_cycle(rendezvous_graph(streams), {}, kSearches);
  if (!cycle.empty()) {
    report_cycle(cycle);
  }
}

}  // namespace

void check_communication(const Input& in, Violations& out) {
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
