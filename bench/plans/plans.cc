/// Does planning pay? This program measures step times of planned cuts and schedules and of simpler
/// ones, and compares them with their predictions (plans_comparison.h). It can also move one split
/// through a model (plans_sweep.h).
///
///   plans [--workers 2,4] [--processes] [--rounds N] [--memory BYTES] [MODEL...]
///   plans --model-file MODEL --data DIR ...
///   plans --sweep [--splits N] [--plot FILE.svg] [MODEL]
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/plans/plans_comparison.h"
#include "stagecraft/bench/plans/plans_plot.h"
#include "stagecraft/bench/plans/plans_subject.h"
#include "stagecraft/bench/plans/plans_sweep.h"
#include "stagecraft/tools/common/number.h"

namespace stagecraft::bench::plans {
namespace {

struct Options {
  std::vector<int> workers{2, 4};
  WaysOptions ways;
  std::optional<std::int64_t> memory;
  std::string model_file, data;
  bool sweep = false;
  int splits = 16;
  std::string plot;
  std::vector<std::string> models;
};

void declare(CLI::App& app, Options& o) {
  app.add_option("--workers", o.workers)->delimiter(',')->allow_extra_args(false);
  app.add_flag("--processes", o.ways.processes, "workers are processes");
  app.add_option("--rounds", o.ways.rounds, "of 3 steps each")->check(CLI::PositiveNumber);
  app.add_option("--memory", o.memory, "of a worker, which auto plans for, e.g. 64M (no limit)")
      ->transform(tools::byte_number());
  CLI::Option* file = app.add_option("--model-file", o.model_file, "a model from a file");
  file->needs(app.add_option("--data", o.data, "its folder of microbatches")->needs(file));
  CLI::Option* sweep =
      app.add_flag("--sweep", o.sweep, "only move a split through the first model");
  app.add_option("--splits", o.splits)->needs(sweep)->check(CLI::PositiveNumber);
  app.add_option("--plot", o.plot, "an SVG file of the sweep")->needs(sweep);
  app.add_option("MODEL",
                 o.models,
                 "models of stagecraft train, 'words' or 'towers'; all, unless a file is given");
}

std::vector<Subject> subjects(const Options& o) {
  std::vector<Subject> all;
  if (!o.model_file.empty()) {
    all.push_back(subject_of_file(o.model_file, o.data));
  }
  const bool named = !o.models.empty() || !o.model_file.empty();
  for (const std::string& name : named ? o.models : subject_names()) {
    all.push_back(subject_named(name));
  }
  return all;
}

void run_sweep(const Options& o) {
  const Subject subject = subjects(o).front();
  const Sweep swept = sweep(subject, o.ways, o.splits);
  fmt::print("{}", text_of(swept));
  if (!o.plot.empty()) {
    std::ofstream(o.plot) << plot_of(swept,
                                     fmt::format("{} microbatches by 1F1B, workers are {}; {}",
                                                 subject.microbatches,
                                                 o.ways.processes ? "processes" : "threads",
                                                 hardware()));
  }
}

void run_comparisons(Options o) {
  const double memory =
      o.memory ? static_cast<double>(*o.memory) : std::numeric_limits<double>::infinity();
  std::vector<Comparison> all;
  for (const Subject& subject : subjects(o)) {
    for (const int workers : o.workers) {
      o.ways.workers = workers;
      all.push_back(compare(subject, o.ways, memory));
      fmt::print("{}", text_of(all.back(), memory));
      std::fflush(stdout);  // rows take minutes
    }
  }
  fmt::print("{}", summary_of(all));
}

}  // namespace

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Does planning pay?", "plans");
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  fmt::print("{}\n", hardware());
  try {
    options.sweep ? run_sweep(options) : run_comparisons(options);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "plans: {}\n", error.what());
    return 1;
  }
}

}  // namespace stagecraft::bench::plans
