#include "stagecraft/scheduler/planners/pfeife/channels.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace stagecraft {
namespace {

/// Vertices of the transfers between two rows.
using Channel = std::vector<int>;
using Rows = std::pair<int, int>;

struct Overlap {
  int first = 0;  ///< the one that starts first
  int second = 0;
};

/// Returns the transfers by sending and receiving row.
std::map<Rows, Channel> one_way_channels(const StepGraph& graph, const Placement& placement) {
  std::map<Rows, Channel> channels;
  for (int v = 0; v < graph.vertices(); ++v) {
    const StepEvent& event = graph.event(v);
    if (event.is_transfer()) {
      const int from = placement.row(event.task.stage).value();
      const int to = placement.row(event.receiver).value();
      channels[{from, to}].push_back(v);
    }
  }
  return channels;
}

class Channels {
 public:
  Channels(StepGraph& graph, const Placement& placement) : graph_(graph) {
    std::vector<std::pair<int, int>> turns;
    for (auto& [rows, transfers] : one_way_channels(graph, placement)) {
      std::ranges::stable_sort(
          transfers, {}, [&](int v) { return graph_.find({graph_.event(v).task}); });
      for (std::size_t i = 1; i < transfers.size(); ++i) {
        turns.emplace_back(transfers[i - 1], transfers[i]);  // HC-1
      }
      Channel& channel = channels_[std::minmax(rows.first, rows.second)];
      channel.insert(channel.end(), transfers.begin(), transfers.end());
    }
    graph_.add_orders(turns);
  }

  double share(const std::function<bool()>& is_over) {
    double time = graph_.run();
    while (const std::optional<Overlap> overlap = first_overlap()) {
      if (is_over && is_over()) {
        return in_order_of_time();
      }
      const double kept = time_of(overlap->first, overlap->second);
      const double swapped = time_of(overlap->second, overlap->first);
      const bool keep = kept <= swapped;
      graph_.add_order(keep ? overlap->first : overlap->second,
                       keep ? overlap->second : overlap->first);
      time = graph_.run();
    }
    return time;
  }

 private:
  /// Orders all transfers as they started in the last run. The places of those that started at once
  /// agree with what they wait for, so no circle closes (HC-3).
  double in_order_of_time() {
    std::vector<std::pair<int, int>> turns;
    for (auto& [rows, channel] : channels_) {
      std::ranges::sort(
          channel, {}, [&](int v) { return std::tuple(graph_.start(v), graph_.place(v)); });
      for (std::size_t i = 1; i < channel.size(); ++i) {
        turns.emplace_back(channel[i - 1], channel[i]);
      }
    }
    graph_.add_orders(turns);
    return graph_.run();
  }

  double time_of(int before, int after) {
    graph_.add_order(before, after);
    const double time = graph_.run();
    graph_.remove_last_order();
    return time;
  }

  /// Returns the first overlap of all channels. Requires: the graph has run.
  std::optional<Overlap> first_overlap() {
    std::optional<Overlap> found;
    double begin = 0;
    for (auto& [rows, channel] : channels_) {
      std::ranges::sort(
          channel, {}, [&](int v) { return std::tuple(graph_.start(v), graph_.end(v), v); });
      int longest = StepGraph::kMissing;  // the last to end of those before
      for (const int v : channel) {
        const double start = graph_.start(v);
        if (found && start >= begin) {
          break;
        }
        if (longest != StepGraph::kMissing && start < graph_.end(longest) &&
            start < graph_.end(v)) {
          found = {longest, v};
          begin = start;
          break;
        }
        if (longest == StepGraph::kMissing || graph_.end(v) >= graph_.end(longest)) {
          longest = v;
        }
      }
    }
    return found;
  }

  StepGraph& graph_;
  std::map<Rows, Channel> channels_;
};

}  // namespace

double share_channels(StepGraph& graph,
                      const Placement& placement,
                      const std::function<bool()>& is_over) {
  return Channels(graph, placement).share(is_over);
}

std::vector<EventOrder> channel_orders(const StepGraph& graph, const Placement& placement) {
  std::map<Rows, Channel> channels;
  for (const auto& [rows, transfers] : one_way_channels(graph, placement)) {
    Channel& channel = channels[std::minmax(rows.first, rows.second)];
    std::ranges::copy_if(transfers, std::back_inserter(channel), [&](int v) {
      return graph.end(v) > graph.start(v);  // a transfer that takes no time blocks none
    });
  }
  std::vector<EventOrder> orders;
  for (auto& [rows, channel] : channels) {
    std::ranges::sort(channel, {}, [&](int v) { return graph.start(v); });
    for (std::size_t i = 1; i < channel.size(); ++i) {
      orders.push_back({graph.event(channel[i - 1]), graph.event(channel[i])});
    }
  }
  return orders;
}

}  // namespace stagecraft
