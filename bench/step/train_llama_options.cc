#include "stagecraft/bench/step/train_llama_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/tools/common/command_line.h"

namespace stagecraft::bench {
namespace {

// The model has eight heads of an even width; its feed-forward is 43 / 16 as wide.
constexpr std::int64_t kDimStep = 16;
constexpr std::int64_t kMost = 1 << 16;

std::string wrong_dim(const std::string& word) {
  std::int64_t dim = 0;
  const bool number = CLI::detail::lexical_cast(word, dim);
  return number && dim > 0 && dim <= kMost && dim % kDimStep == 0
             ? std::string()
             : fmt::format("expects multiples of {} to {}, found '{}'", kDimStep, kMost, word);
}

}  // namespace

std::variant<TrainLlamaOptions, std::string> parse_train_llama_options(
    const std::vector<std::string>& arguments) {
  TrainLlamaOptions options;
  std::string workers;
  Peer peer;
  CLI::App app("Where a training step goes, and how near it comes to what is possible",
               "train_llama");
  app.add_option("--measure",
                 options.measures,
                 "ideal: a step beside its schedule's makespan; bill: what it is made of; threads: "
                 "what a second thread in the operators gains")
      ->delimiter(',')
      ->check(CLI::IsMember({"ideal", "bill", "threads"}))
      ->capture_default_str();
  app.add_option("--models", options.models, "of the bill")
      ->delimiter(',')
      ->check(CLI::IsMember({"llama", "vit", "unet"}))
      ->capture_default_str();
  app.add_option("--dims", options.dims, "of the Llama; of the first all but the bill")
      ->delimiter(',')
      ->check(CLI::Validator(wrong_dim, "WIDTH"))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "of a worker, for the bill")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "of the bill: 3 steps unwatched, 3 watched")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--workers", workers, "ranks of all but the bill: threads, processes")
      ->check(CLI::IsMember({"threads", "processes"}));
  CLI::Option* const python =
      app.add_option("--peer", peer.python, "a Python that has what the peer's script imports");
  CLI::Option* const script =
      app.add_option("--peer-script", peer.script, "what trains the same model, run in turns");
  python->needs(script);
  script->needs(python);
  app.add_flag("--json", options.json, "one object, times in seconds");
  if (const auto help = tools::parse_command_line(app, arguments)) {
    return *help;
  }
  options.processes = workers == "processes";
  if (!peer.python.empty()) {
    options.peer = peer;
  }
  return options;
}

}  // namespace stagecraft::bench
