#include "stagecraft/tests/tools/train/run/train_run.h"

#include <algorithm>
#include <sstream>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/common/runtime_run.h"

namespace stagecraft::tests {
namespace {

CommandResult run_where_it_can(const std::vector<std::string>& words) {
  const auto workers = std::ranges::find(words, "--workers");
  const bool threads =
      workers == words.end() || workers + 1 == words.end() || *(workers + 1) == "threads";
  return threads ? run_here(words) : run_command(words);
}

}  // namespace

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> small_train(const std::vector<std::string>& more) {
  std::vector<std::string> words{STAGECRAFT_COMMAND, "train"};
  // The caller's options are left out here, because an option may be given once.
  const std::vector<std::pair<std::string, std::string>> defaults{{"--layers", "4"},
                                                                  {"--dim", "32"},
                                                                  {"--heads", "2"},
                                                                  {"--ffn", "48"},
                                                                  {"--seq", "16"},
                                                                  {"--microbatch-size", "2"},
                                                                  {"--microbatches", "4"},
                                                                  {"--steps", "3"}};
  for (const auto& [option, value] : defaults) {
    if (std::find(more.begin(), more.end(), option) == more.end()) {
      words.insert(words.end(), {option, value});
    }
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

CommandResult run_train(const std::vector<std::string>& more) {
  return run_where_it_can(small_train(more));
}

TrainOutput train_json(const std::vector<std::string>& more) {
  return train_output(small_train(more));
}

nlohmann::json train_event(const std::string& line) {
  CAPTURE(line);
  REQUIRE(line.starts_with(R"({"stagecraft":"train","version":1,"event":)"));
  nlohmann::json event = nlohmann::json::parse(line);
  event.erase("stagecraft");
  event.erase("version");
  return event;
}

TrainOutput train_output(std::vector<std::string> words) {
  words.emplace_back("--json");
  const CommandResult result = run_where_it_can(words);
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  TrainOutput output;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = train_event(line);
    const std::string event = object.at("event");
    if (event == "step") {
      output.steps.push_back(object);
    } else if (event == "verify") {
      output.verify = object;
    } else if (event == "planned_against_measured") {
      output.timeline = object;
    } else if (event == "ranks") {
      output.ranks = object;
    } else if (event == "done") {
      output.done = object;
    } else {
      output.others.push_back(object);
    }
  }
  REQUIRE(output.done.is_object());
  return output;
}

}  // namespace stagecraft::tests
