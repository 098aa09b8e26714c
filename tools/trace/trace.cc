#include "stagecraft/tools/trace/trace.h"

#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/trace/compare.h"
#include "stagecraft/tools/train/number.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kFooter =
    "Exit status: 0 compared, however far apart; 1 the plan breaks a rule; 2 wrong usage, or a "
    "file "
    "that cannot be read, was cut off or is of another schedule.";

void add_compare(CLI::App& app, CompareOptions& o) {
  CLI::App* compare = app.add_subcommand(
      "compare",
      "Holds a traced run against its schedule: makespan, how each rank spent it, and the cells "
      "that are furthest from their plan.");
  compare->add_option("PLAN", o.plan, "a schedule file")->required();
  compare->add_option("TRACE", o.trace, "a file that stagecraft train --trace wrote")->required();
  compare
      ->add_option(
          "--costs", o.costs, "durations to plan with [the trace's mean per stage and kind]")
      ->type_name("FILE");
  compare->add_option("--limit", o.limit, "cells to print, furthest from plan first")
      ->check(whole_number(0))
      ->capture_default_str();
  compare->add_flag("--json", o.json, "one JSON object");
  compare->footer(kFooter);
}

}  // namespace

ExitCode trace(const std::vector<std::string>& arguments) {
  CompareOptions options;
  CLI::App app("Reads the trace files of stagecraft train --trace.", "stagecraft trace");
  app.require_subcommand(1);
  app.footer("stagecraft trace compare --help lists its options.");
  add_compare(app, options);
  try {
    // CLI11 takes a vector from its back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return ExitCode::Good;
  } catch (const CLI::ParseError& error) {
    throw Error(Errc::UsageArgument,
                fmt::format("{}; see stagecraft trace compare --help", error.what()));
  }
  compare_files(options, std::cout);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
