#include "stagecraft/bench/plans/plans_ways.h"

#include <thread>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/bench/plans/judged.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft::bench {

std::string miss_text(double missed_by, double one_worker_by) {
  return fmt::format("{:+.1f} %, {:+.1f} % beside one worker",
                     100 * (missed_by - 1),
                     100 * (missed_by / one_worker_by - 1));
}

Ways::Ways(Subject subject, const WaysOptions& options)
    : subject_(std::move(subject)),
      options_(options),
      cluster_(options.processes ? Cluster::spawn(options.workers)
                                 : Cluster::local(options.workers)),
      one_worker_(options.processes ? Cluster::spawn(1) : Cluster::local(1)),
      whole_(subject_.compile(At{}, 1)),
      costs_(profile(whole_,
                     subject_.inputs,
                     subject_.labels,
                     {.ranks = options.processes ? RankHomes::Processes : RankHomes::Threads})
                 .costs) {
  add_to(one_worker_, "uncut on one worker", whole_, std::nullopt);
}

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

void Ways::add(const std::string& name,
               const Program& program,
               const std::optional<Schedule>& schedule) {
  add_to(cluster_, name, program, schedule);
}

void Ways::add_to(const Cluster& cluster,
                  const std::string& name,
                  const Program& program,
                  const std::optional<Schedule>& schedule) {
  const Schedule by = schedule.value_or(one_f_one_b(program.stage_graph(), subject_.microbatches));
  PlanRequest request = this->request();
  request.devices = cluster.ranks();
  ways_.push_back({.name = name,
                   .predicted = judged(request, program, by),
                   .trainer = std::make_unique<Trainer>(cluster, program, by, AdamW{}),
                   .seconds = {}});
}

void Ways::take_turns(int rounds, bool counted) {
  constexpr int kStepsOfATurn = 3;
  for (int round = 0; round < rounds; ++round) {
    for (Way& way : ways_) {
      for (int step = 0; step < kStepsOfATurn; ++step) {
        const double took =
            seconds_of([&] { (void)way.trainer->step(subject_.inputs, subject_.labels).get(); });
        if (counted && step > 0) {  // the first step finds the caches of another way
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
