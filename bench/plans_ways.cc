#include "stagecraft/bench/plans_ways.h"

#include <thread>
#include <utility>

#include "stagecraft/bench/judged.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/compiler/compiled_program.h"

namespace stagecraft::bench {

Ways::Ways(Subject subject, const WaysOptions& options)
    : subject_(std::move(subject)),
      options_(options),
      cluster_(options.processes ? Cluster::spawn(options.workers)
                                 : Cluster::local(options.workers)),
      whole_(subject_.compile(At{}, 1)),
      costs_(profile(whole_,
                     subject_.inputs,
                     subject_.labels,
                     {.ranks = options.processes ? RankHomes::Processes : RankHomes::Threads})
                 .costs) {}

int Ways::operators() const {
  return static_cast<int>(whole_.compiled().graph.nodes.size());
}

PlanRequest Ways::request() const {
  PlanRequest made{.costs = costs_,
                   .devices = options_.workers,
                   .batch = subject_.microbatches * costs_.samples};
  made.costs.device.processors = static_cast<int>(std::thread::hardware_concurrency());
  return made;
}

/// What the simulator says of the cut that was made.
PlanProposal Ways::predict(const Program& program, const Schedule& schedule) const {
  return judged(request(), program, schedule);
}

void Ways::add(const std::string& name,
               const Program& program,
               const std::optional<Schedule>& schedule) {
  const Schedule by = schedule.value_or(one_f_one_b(program.stage_graph(), subject_.microbatches));
  ways_.push_back({.name = name,
                   .predicted = predict(program, by),
                   .trainer = std::make_unique<Trainer>(cluster_, program, by, AdamW{}),
                   .seconds = {}});
}

void Ways::take_turns(int rounds, bool counted) {
  constexpr int kStepsOfATurn = 3;
  for (int round = 0; round < rounds; ++round) {
    for (Way& way : ways_) {
      for (int step = 0; step < kStepsOfATurn; ++step) {
        const double took =
            seconds_of([&] { (void)way.trainer->step(subject_.inputs, subject_.labels).get(); });
        if (counted && step > 0) {  // caches are another's before
          way.seconds.push_back(took);
        }
      }
    }
  }
}

std::vector<MeasuredWay> Ways::measure() {
  take_turns(1, /*counted=*/false);
  take_turns(options_.rounds, /*counted=*/true);
  std::vector<MeasuredWay> measured;
  for (const Way& way : ways_) {
    measured.push_back(
        {.name = way.name,
         .predicted = way.predicted.step,
         .bytes = way.predicted.bytes[static_cast<std::size_t>(way.predicted.fullest())],
         .seconds = quartiles_of(way.seconds)});
  }
  return measured;
}

}  // namespace stagecraft::bench
