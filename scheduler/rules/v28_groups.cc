/// V28: the members of an overlap group are different tasks, none of which waits for another.
///
/// Tasks of different microbatches never wait for each other, so only members of one microbatch
/// (and updates, which wait for all) are compared. The relation of two stages is searched once and
/// cached, which keeps the check of a schedule full of groups linear.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {
namespace {

constexpr std::size_t kMostMembers = 64;  // because each pair is compared

using Path = std::vector<Task>;

/// B and I release the same tasks, so they count as one kind.
CellKind released_like(CellKind kind) {
  return kind == CellKind::Backward ? CellKind::BackwardInput : kind;
}

bool same_node(const Task& a, const Task& b) {
  return a.stage == b.stage && released_like(a.kind) == released_like(b.kind);
}

class PathFinder {
 public:
  explicit PathFinder(const RuleInput& in)
      : in_(in), seen_(static_cast<std::size_t>(in.graph.size()) * kKinds, false) {}

  /// Returns tasks from `from` to `to`, each waiting for the one before; empty if `to` does not
  /// wait for `from`.
  Path find(const Task& from, const Task& to);

 private:
  Path search(const Task& from, const Task& to);
  static std::size_t node(const Task& task) {
    return task.stage.index() * kKinds + static_cast<std::size_t>(released_like(task.kind));
  }

  static constexpr std::size_t kKinds = 8;

  const RuleInput& in_;
  std::map<std::tuple<CellKind, StageId, CellKind, StageId>, bool> related_;
  std::vector<bool> seen_;  // by node; false between searches
};

Path PathFinder::search(const Task& from, const Task& to) {
  // Search backwards from `to`, breadth first, within one microbatch. `reached[i]` was found
  // through `via[i]`.
  const Microbatch m = from.kind == CellKind::Update ? to.microbatch : from.microbatch;
  std::vector<Task> reached{to};
  std::vector<std::size_t> via{0};
  Path path;
  for (std::size_t next = 0; next < reached.size() && path.empty(); ++next) {
    const Task task = reached[next];
    if (next > 0 && same_node(task, from)) {
      path.push_back(from);
      for (std::size_t i = via[next]; path.back() != to; i = via[i]) {
        path.push_back(reached[i]);
      }
    }
    const auto reach = [&](const Task& prerequisite) {
      if (prerequisite.microbatch == m && !seen_[node(prerequisite)]) {
        seen_[node(prerequisite)] = true;
        reached.push_back(prerequisite);
        via.push_back(next);
      }
    };
    if (task.kind == CellKind::Update) {  // of all its prerequisites, only this microbatch matters
      for (const CellKind kind : {CellKind::Backward, CellKind::BackwardWeight}) {
        if (in_.tasks.has(kind, task.stage, m)) {
          reach({kind, task.stage, m});
        }
      }
    } else {
      in_.tasks.for_each_prerequisite(task, reach);
    }
  }
  for (const Task& task : reached) {
    seen_[node(task)] = false;
  }
  return path;
}

Path PathFinder::find(const Task& from, const Task& to) {
  if (from.microbatch != to.microbatch && to.kind != CellKind::Update) {
    return {};
  }
  const auto [known, first] =
      related_.try_emplace({from.kind, from.stage, to.kind, to.stage}, true);
  if (!first && !known->second) {
    return {};
  }
  Path path = search(from, to);
  known->second = !path.empty();
  return path;
}

std::string path_text(const Path& path) {
  std::string text;
  for (const Task& task : path) {
    text += text.empty() ? "" : " -> ";
    text += to_string(task);
  }
  return text;
}

void check_pair(
    const Entry& entry, const Task& a, const Task& b, PathFinder& finder, Violations& out) {
  if (a == b) {
    Violation v = at("V28", entry, a);
    v.missing = to_string(b);
    v.cause = "twice";
    v.message = fmt::format("the group {} holds {} twice; its tasks must be different",
                            to_string(*entry.cell),
                            to_string(a));
    out.push_back(std::move(v));
    return;
  }
  Path path = finder.find(a, b);
  if (path.empty()) {
    path = finder.find(b, a);
  }
  if (!path.empty()) {
    Violation v = at("V28", entry, path.back());
    v.missing = to_string(path.front());
    v.cause = fmt::format("{}{} {}{}",
                          path.back().stage.value,
                          letter(path.back().kind),
                          path.front().stage.value,
                          letter(path.front().kind));
    v.message = fmt::format(
        "the tasks of {} must not wait for each other, but {} waits for {} ({}); give them "
        "cells of their own",
        to_string(*entry.cell),
        to_string(path.back()),
        to_string(path.front()),
        path_text(path));
    out.push_back(std::move(v));
  }
}

}  // namespace

void check_groups(const RuleInput& in, Violations& out) {
  PathFinder finder(in);
  for (const Entry& entry : in.tasks.entries()) {
    const auto members = entry.cell->tasks();
    if (members.size() > kMostMembers) {
      Violation v = at("V28", entry, members.front());
      v.cause = "too many tasks";
      v.missing = fmt::format("{} tasks too many", members.size() - kMostMembers);
      v.message =
          fmt::format("the group has {} tasks, but at most {} can be issued together; split it",
                      members.size(),
                      kMostMembers);
      out.push_back(std::move(v));
      continue;
    }
    for (std::size_t i = 0; i + 1 < members.size(); ++i) {
      for (std::size_t j = i + 1; j < members.size(); ++j) {
        if (in.tasks.in_range(members[i]) && in.tasks.in_range(members[j])) {
          check_pair(entry, members[i], members[j], finder, out);
        }
      }
    }
  }
}

}  // namespace stagecraft::rules
