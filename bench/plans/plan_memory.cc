/// Do ranks hold what is predicted? For each model of `stagecraft train`, and a Llama whose head is
/// most of it: by 1F1B, by GPipe, by ZB-H1 and by ZB-V on an even cut, and by the plan `auto`, what
/// the simulator says of every rank beside what was counted there.
///
///   plan_memory [--workers N] [MODEL...]
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/plans/judged.h"
#include "stagecraft/bench/plans/plans_subject.h"
#include "stagecraft/bench/plans/rank_bytes.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::plan_memory {
namespace {

constexpr double kMiB = 1024 * 1024;

/// The largest relative excess of a rank's memory over its prediction, and of a prediction over the
/// memory.
double most_under = 0;
double most_over = 0;

void compare(const Subject& model,
             const std::string& way,
             const PlanRequest& request,
             const Program& program,
             const Schedule& schedule) {
  const PlanProposal predicted = judged(request, program, schedule);
  const std::vector<RankBytes> counted =
      count_bytes(program, schedule, AdamW{}, model.inputs, model.labels);
  for (std::size_t r = 0; r < counted.size(); ++r) {
    const auto peak = static_cast<double>(counted[r].peak);
    // The amount that waits depends on which rank is faster, so both sides leave it out.
    const double bytes = predicted.bytes[r] - predicted.early[r];
    most_under = std::max(most_under, peak / bytes - 1);
    most_over = std::max(most_over, bytes / peak - 1);
    fmt::print(
        "{:18} {:36} rank {}  predicted {:8.2f} MiB  counted {:8.2f}  {:+5.1f} %  of it state "
        "{:7.2f}  early {:5.2f}  waiting {:5.2f}  most at {}\n",
        model.name,
        way,
        r,
        bytes / kMiB,
        peak / kMiB,
        100 * (bytes / peak - 1),
        static_cast<double>(counted[r].state) / kMiB,
        predicted.early[r] / kMiB,
        static_cast<double>(counted[r].waiting) / kMiB,
        counted[r].during ? to_string(*counted[r].during) : "-");
  }
}

void compare_all(const Subject& model, int workers) {
  const Program whole = model.compile(At{}, 1);
  PlanRequest request{.costs = profile(whole, model.inputs, model.labels, {.repeats = 1}).costs,
                      .devices = workers};
  request.batch = model.microbatches * request.costs.samples;
  const Program even = model.compile({}, workers);
  compare(
      model, "even cut, 1f1b", request, even, one_f_one_b(even.stage_graph(), model.microbatches));
  compare(model, "even cut, gpipe", request, even, gpipe(even.stage_graph(), model.microbatches));
  compare(model, "even cut, zb-h1", request, even, zb_h1(workers, model.microbatches));
  compare(model,
          "even cut, zb-v",
          request,
          model.compile({}, 2 * workers),
          zb_v(workers, model.microbatches));
  const PlanProposal best = plan(whole, request.costs, workers, {.batch = request.batch}).front();
  compare(model,
          fmt::format("auto: {}", best.candidate.schedule_name),
          request,
          model.compile(planned_cut(request.costs, best), workers),
          best.candidate.schedule);
}

}  // namespace

int run(int argc, char** argv) {
  int workers = 2;
  std::vector<std::string> models;
  CLI::App app("Do ranks hold what is predicted?", "plan_memory");
  app.add_option("--workers", workers);
  app.add_option("MODEL", models, "models of stagecraft train, words, or towers");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  fmt::print("{}\n", hardware());
  if (models.empty()) {
    models = subject_names();
  }
  for (const std::string& model : models) {
    compare_all(subject_named(model), workers);
  }
  fmt::print("at most {:.1f} % more than predicted, and {:.1f} % less\n",
             100 * most_under,
             100 * (1 - 1 / (1 + most_over)));
  return 0;
}

}  // namespace stagecraft::bench::plan_memory
