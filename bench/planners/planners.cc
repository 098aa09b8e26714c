/// How long do planners search? This program runs the models of GraphPipe's table at 4 to 32
/// devices and compares with the published times, and finds how large a problem each planner can
/// solve.
///
/// One row of `kQuestions` is one line of output. Units: processor seconds of the whole search,
/// which other load of the machine changes little: all sizes of microbatch that are powers of two,
/// with and without copies of stages, 16 GB per device, schedules included.
/// Published: Jeon et al., "GraphPipe", table 3 (a search of theirs on a machine of theirs).
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/planners/planners_capslog.h"
#include "stagecraft/bench/planners/planners_pfeife.h"
#include "stagecraft/examples/costs/cost_models.h"
#include "stagecraft/scheduler/planners/graphpipe/graphpipe.h"
#include "stagecraft/scheduler/planners/propose.h"

namespace stagecraft::bench::planners {
namespace {

constexpr double kDeviceMemory = 16e9;

struct Question {
  std::string_view planner;
  std::string_view model;
  int devices = 1;
  int batch = 1;
  int smallest = 1;      ///< the smallest size of microbatches; sizes grow by factors of two
  int largest = 1;       ///< the largest size
  double published = 0;  ///< seconds; 0 for none
  double goal = 0;       ///< likewise
};

using Planner = std::vector<Candidate> (*)(const PlanRequest&);

/// Returns the planner of this name. New planners are added here.
Planner find_planner(std::string_view name) {
  if (name == "graphpipe") {
    return [](const PlanRequest& request) { return graphpipe_candidates(request); };
  }
  return nullptr;
}

constexpr Question kQuestions[] = {
    {"graphpipe", "mmt", 4, 64, 1, 64, 0.12},
    {"graphpipe", "mmt", 8, 128, 1, 128, 0.76},
    {"graphpipe", "mmt", 16, 256, 1, 256, 3.00},
    {"graphpipe", "mmt", 32, 512, 1, 512, 10.11, 10.11 / 20},
    {"graphpipe", "dlrm", 4, 256, 1, 256, 0.33},
    {"graphpipe", "dlrm", 8, 512, 1, 512, 2.73},
    {"graphpipe", "dlrm", 16, 1024, 1, 1024, 13.28},
    {"graphpipe", "dlrm", 32, 2048, 1, 2048, 54.6, 54.6 / 20},
    {"graphpipe", "candle-uno", 4, 4096, 1, 4096, 0.19},
    {"graphpipe", "candle-uno", 8, 8192, 1, 8192, 1.43},
    {"graphpipe", "candle-uno", 16, 16384, 1, 16384, 6.14},
    {"graphpipe", "candle-uno", 32, 32768, 1, 32768, 22.37, 22.37 / 20},
    {"graphpipe", "chain of 10000", 1024, 4096, 4, 4, 0, 60},
    {"graphpipe", "4 branches of 2500", 1024, 4096, 4, 4, 0, 60},
    {"graphpipe", "16 branches of 625", 1024, 4096, 4, 4, 0, 60}};

/// Returns costs of so many branches of linear operators of equal shape, whose widths differ a
/// little.
Costs branches_of(int branches, int operators) {
  examples::CostGraph graph;
  std::vector<int> ends;
  for (int b = 0; b < branches; ++b) {
    std::vector<int> last;
    for (int op = 0; op < operators; ++op) {
      const double width = 512 + 64 * ((op * 7 + b * 3) % 5);
      last = {graph.linear(fmt::format("{}.{}", b, op), last, 64, width, 512)};
    }
    ends.push_back(last.front());
  }
  graph.linear("head", ends, 64, 512, 512);
  return std::move(graph).take();
}

Costs costs_of(std::string_view model) {
  if (model == "chain of 10000") {
    return branches_of(1, 9999);
  }
  if (model == "4 branches of 2500") {
    return branches_of(4, 2500);
  }
  if (model == "16 branches of 625") {
    return branches_of(16, 625);
  }
  return examples::find_cost_model(model).costs();
}

void measure(const Question& question) {
  PlanRequest request{.costs = costs_of(question.model),
                      .devices = question.devices,
                      .batch = question.batch,
                      .memory = kDeviceMemory};
  for (int size = question.smallest; size <= question.largest; size *= 2) {
    request.microbatch_sizes.push_back(size);
  }
  const Planner planner = find_planner(question.planner);
  const std::clock_t start = std::clock();
  std::string answer;
  try {
    const std::vector<Candidate> found = planner(request);
    const Candidate& best = found.front();
    answer = fmt::format("{:>3} stages, microbatches of {}{}",
                         best.stages.size(),
                         best.microbatch_size,
                         best.schedule.headers().places.empty() ? "" : ", copies");
  } catch (const Error& error) {
    answer = error.what();
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const auto figure = [](double value) {
    return value > 0 ? fmt::format("{:.2f}", value) : std::string("-");
  };
  const std::string times =
      question.published > 0 ? fmt::format("{:.0f} x", question.published / seconds) : "-";
  fmt::print("{:<10} {:<19} {:>5} {:>6} {:>9.4f} {:>9} {:>7} {:>7}   {}\n",
             question.planner,
             question.model,
             question.devices,
             question.batch,
             seconds,
             figure(question.published),
             times,
             figure(question.goal),
             answer);
  std::fflush(stdout);
}

/// Measures what `plan --devices 8 --batch 16` does on a large graph, judge included.
void measure_auto(double memory) {
  const PlanRequest request{
      .costs = examples::skip_chain(), .devices = 8, .batch = 16, .memory = memory};
  const std::clock_t start = std::clock();
  const std::vector<PlanProposal> found = propose(request, "auto");
  fmt::print("auto, {} operators, {} devices, {}: {:.1f} s, a step of {:.4g} s by {}\n",
             request.costs.operators.size(),
             request.devices,
             std::isinf(memory) ? "any memory" : fmt::format("{:.1f} GB each", memory / 1e9),
             static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC,
             found.front().step,
             found.front().candidate.schedule_name);
}

}  // namespace

/// With an argument, runs only the questions whose planner or model contains it.
int run(int argc, char** argv) {
  fmt::print("{}\n", hardware());
  fmt::print("{:<10} {:<19} {:>5} {:>6} {:>9} {:>9} {:>7} {:>7}   best by its own model\n",
             "planner",
             "model",
             "dev.",
             "batch",
             "seconds",
             "published",
             "faster",
             "goal");
  for (const Question& question : kQuestions) {
    const std::string_view word = argc > 1 ? argv[1] : "";
    if (question.planner.find(word) != std::string_view::npos ||
        question.model.find(word) != std::string_view::npos) {
      measure(question);
    }
  }
  const PfeifeFigures pfeife = pfeife_figures();
  fmt::print(
      "pfeife, {} operators, {} devices, up to 3 loops: {:.2f} s (published {:.0f}, goal 5), "
      "{:.4g} s "
      "a step by {}; the paper's beam to its end, 3 loops alone: {:.2f} s, {:.4g} s a step\n",
      pfeife.operators,
      pfeife.devices,
      pfeife.seconds,
      kPublishedSeconds,
      pfeife.step,
      pfeife.schedule,
      pfeife.plain_seconds,
      pfeife.plain_step);
  fmt::print("capslog, {} layers, {} devices: {:.1f} us (published {:.0f}, goal 50)\n",
             kCapslogLayers,
             kCapslogDevices,
             capslog_seconds() * 1e6,
             kPublishedCapslogSeconds * 1e6);
  for (const double memory : {std::numeric_limits<double>::infinity(), 3.5e9}) {
    measure_auto(memory);
  }
  return 0;
}

}  // namespace stagecraft::bench::planners
