#include "stagecraft/tools/dag/show_options.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/number.h"

namespace stagecraft::tools {

void add_dag_show_options(CLI::App& app, DagShowOptions& o) {
  app.footer(
      "With a duration or --costs it also prints the time of a step, and how much communication "
      "runs under tasks: each rank has a processor, and a chunk the part of its stage's time that "
      "its operators take in --costs with --model, else an equal one.\n"
      "Exit status: 0 shown; 1 the strategy or the schedule cannot be applied; 2 wrong usage, a "
      "file that cannot be read, or output that cannot be written.\n"
      "Example: stagecraft schedule make 1f1b --devices 2 --microbatches 2 | stagecraft dag "
      "show -");
  add_file_argument(app, o.file, "strategy or schedule file");
  add_read_options(app, o.read);
  app.add_option("--stages",
                 o.stages,
                 "stages of a strategy's model [as many as it places by their number]")
      ->check(whole_number(1, kMaxStages))
      ->type_name("N");
  app.add_option("--microbatches", o.microbatches, "microbatches of a strategy without `split` [1]")
      ->check(whole_number(1, kMaxMicrobatches))
      ->type_name("N");
  add_cost_options(app, o.given);
  app.add_option("--exchange", o.exchange, "duration of an exchange of samples (shard) [0]")
      ->check(number_from_zero())
      ->type_name("X");
  app.add_option("--svg", o.svg, "write an SVG picture instead of the text")->type_name("FILE");
  app.add_option("--html", o.html, "write a page for a browser instead of the text")
      ->type_name("FILE");
  app.add_option("-o,--output", o.output, "file to write, of text or JSON [standard output]")
      ->type_name("FILE");
  app.add_flag("--json", o.json, "print one JSON object instead of the text");
}

void complete_dag_show_options(const CLI::App& app, DagShowOptions& o, Console& console) {
  constexpr const char* kTimes[] = {
      "--f", "--b", "--i", "--w", "--latency", "--costs", "--exchange"};
  if (std::ranges::any_of(kTimes, [&](const char* time) { return app.count(time) > 0; })) {
    o.costs = DagCosts{.costs = costs_of(app, o.given, console), .exchange = o.exchange};
  }
  if (!o.output.empty() && !o.prints()) {
    wrong_usage(kShowDagCommand,
                "--output is the file of text or JSON, found only pictures, which name their own "
                "files; leave it out or add --json");
  }
  std::vector<std::pair<const char*, std::string>> files{{"--svg", o.svg}, {"--html", o.html}};
  if (o.prints()) {
    files.emplace_back("--output", o.output.empty() ? "-" : o.output);
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!files[i].second.empty() && files[i].second == files[j].second) {
        wrong_usage(kShowDagCommand,
                    fmt::format("{} and {} expect two files, found '{}' twice",
                                files[j].first,
                                files[i].first,
                                files[i].second));
      }
    }
  }
  std::vector<NamedFile> inputs = files_read(o.file, o.read);
  inputs.emplace_back("--costs", o.given.file);
  check_all_apart(std::move(inputs), {files.begin(), files.end()});
}

}  // namespace stagecraft::tools
