/// Answers one question about what Stagecraft costs: `stagecraft_bench QUESTION [OPTIONS]`.
#include <algorithm>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/actors/launch/worker/worker_main.h"
#include "stagecraft/bench/call_target.h"
#include "stagecraft/bench/questions.h"

int main(int argc, char** argv) {
  if (stagecraft::is_worker(argc, argv)) {  // of actor_calls
    return stagecraft::worker_main(argc, argv, stagecraft::types<stagecraft::bench::CallTarget>());
  }
  const auto questions = stagecraft::bench::questions();
  const std::string_view name = argc > 1 ? argv[1] : "";
  const auto asked = std::ranges::find(questions, name, &stagecraft::bench::Question::name);
  if (asked != questions.end()) {
    return asked->run(argc - 1, argv + 1);
  }
  const bool help = name == "--help" || name == "-h";
  std::FILE* const out = help ? stdout : stderr;
  if (!help && !name.empty()) {
    fmt::print(out, "stagecraft_bench: there is no question \"{}\"\n", name);
  }
  fmt::print(out, "usage: stagecraft_bench QUESTION [OPTIONS]\n");
  for (const auto& question : questions) {
    fmt::print(out, "  {:<15} {}\n", question.name, question.summary);
  }
  return help ? 0 : 2;
}
