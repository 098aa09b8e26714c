#include "stagecraft/bench/plans/plans_sweep.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft::bench {
namespace {

/// Returns where the first of two stages ends.
int operators_before(const Program& program) {
  const std::vector<int>& stage_of = program.compiled().assignment.stage_of;
  return static_cast<int>(std::ranges::count(stage_of, 0));
}

}  // namespace

Sweep sweep(const Subject& subject, const WaysOptions& options, int splits) {
  Ways ways(subject, options);
  Sweep made{.name = subject.name, .operators = ways.operators(), .points = {}};
  for (int i = 1; i <= splits; ++i) {
    const int place = made.operators * i / (splits + 1);
    const Program program = subject.compile(At{fmt::format("op:{}", place)}, 2);
    const int at = operators_before(program);
    if (made.points.empty() || made.points.back().at != at) {
      made.points.push_back({.at = at, .predicted = 0, .measured = {}});
      ways.add(fmt::format("split before operator {}", at), program);
    }
  }
  const std::vector<MeasuredWay> measured = ways.measure();
  made.one_worker_by = measured.front().missed_by();
  for (std::size_t i = 0; i < made.points.size(); ++i) {
    made.points[i].predicted = measured[i + 1].predicted;
    made.points[i].measured = measured[i + 1].seconds;
  }
  return made;
}

std::string text_of(const Sweep& sweep) {
  std::string text;
  for (const SplitPoint& point : sweep.points) {
    text += fmt::format(
        "split before operator {:4}  predicted {:8.1f} ms  measured {:8.1f} ({:.1f} to {:.1f})  "
        "{}\n",
        point.at,
        point.predicted * 1e3,
        point.measured.median * 1e3,
        point.measured.first * 1e3,
        point.measured.third * 1e3,
        miss_text(point.measured.median / point.predicted, sweep.one_worker_by));
  }
  return text;
}

}  // namespace stagecraft::bench
