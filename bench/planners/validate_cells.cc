/// What does it cost to check a cell? This program checks 10^3 to 10^6 cells: validate() alone, and
/// after reading each format.
///
/// Units: nanoseconds per cell, the median of several runs. With linear growth the figures in a
///        column are equal.
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/formats/json/json.h"
#include "stagecraft/scheduler/formats/pytorch_csv.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace stagecraft::bench::validate_cells {
namespace {

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the median. Short work is repeated so that the clock can measure it.
double median_seconds(std::size_t cells, const std::function<void()>& work) {
  const std::size_t runs = cells >= 300'000 ? 5 : 3'000'000 / cells;
  std::vector<double> samples;
  for (std::size_t i = 0; i < runs; ++i) {
    samples.push_back(seconds(work));
  }
  return median(std::move(samples));
}

/// Ends the program with a message if the schedule has a violation.
void expect_valid(const Schedule& schedule) {
  const auto found = validate(schedule, schedule.stage_graph());
  if (!found.empty()) {
    fmt::print(stderr, "a valid schedule was refused: {}\n", to_string(found.front()));
    std::exit(1);
  }
}

struct Format {
  std::string_view name;
  std::string text;
  std::function<Schedule(const std::string&)> parse;
};

std::vector<Format> formats_of(const Schedule& schedule) {
  const Schedule list = schedule.to_list();
  return {
      {"text, array", to_string(schedule), [](const std::string& t) { return Schedule::parse(t); }},
      {"text, list", to_string(list), [](const std::string& t) { return Schedule::parse(t); }},
      {"JSON", to_json(list), [](const std::string& t) { return parse_json(t); }},
      {"CSV", to_pytorch_csv(list), [](const std::string& t) {
         return parse_pytorch_csv(t).schedule;
       }}};
}

void measure(int rows, int microbatches) {
  const Schedule schedule = one_f_one_b(rows, microbatches);
  const auto cells = static_cast<std::size_t>(rows) * static_cast<std::size_t>(2 * microbatches);
  const auto per_cell = [&](double s) { return s * 1e9 / static_cast<double>(cells); };
  const double array = median_seconds(cells, [&] { expect_valid(schedule); });
  const Schedule list = schedule.to_list();
  const double lists = median_seconds(cells, [&] { expect_valid(list); });
  fmt::print("{:>8} {:>5} {:>14} {:>9.1f}\n", cells, rows, "validate array", per_cell(array));
  fmt::print("{:>8} {:>5} {:>14} {:>9.1f}\n", cells, rows, "validate list", per_cell(lists));
  for (const Format& format : formats_of(schedule)) {
    const double parse = median_seconds(cells, [&] { (void)format.parse(format.text); });
    const double check = median_seconds(cells, [&] { expect_valid(format.parse(format.text)); });
    fmt::print("{:>8} {:>5} {:>14} {:>9.1f} {:>9.1f}   check {:.3f} s\n",
               cells,
               rows,
               format.name,
               per_cell(parse),
               per_cell(check),
               check);
  }
}

/// Measures a file of a large run: 128 ranks with 10^4 cells each, with and without its
/// communication.
void measure_csv() {
  const Schedule schedule = one_f_one_b(128, 5000).to_list();
  const std::string plain = to_pytorch_csv(schedule);
  const std::string comms = to_pytorch_comms_csv(schedule, schedule.stage_graph());
  for (const auto& [name, text] : {std::pair<const char*, const std::string&>{"compute", plain},
                                   {"compute and communication", comms}}) {
    const double parse = median_seconds(1'280'000, [&] { (void)parse_pytorch_csv(text); });
    const double check = median_seconds(1'280'000, [&] {
      const PytorchSchedule read = parse_pytorch_csv(text);
      if (!validate(
               read.schedule, read.schedule.stage_graph(), {.communication = read.communication})
               .empty()) {
        std::exit(1);
      }
    });
    fmt::print(
        "CSV of 128 ranks x 10^4 tasks, {}: {:.1f} MB, read in {:.3f} s, checked in {:.3f} s\n",
        name,
        static_cast<double>(text.size()) / 1e6,
        parse,
        check);
  }
}

}  // namespace

int run(int /*argc*/, char** /*argv*/) {
  fmt::print("{}\n", hardware());
  fmt::print("{:>8} {:>5} {:>14} {:>9} {:>9}   nanoseconds per cell\n",
             "cells",
             "rows",
             "what",
             "alone",
             "and check");
  for (const auto& [rows, microbatches] : {std::pair{4, 125}, {8, 625}, {16, 3125}, {32, 15625}}) {
    measure(rows, microbatches);
  }
  measure_csv();
  return 0;
}

}  // namespace stagecraft::bench::validate_cells
