#include "stagecraft/tests/gpu/equality.h"

#include <cmath>
#include <exception>
#include <filesystem>
#include <optional>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/runtime_commands.h"

namespace stagecraft::gpu {
namespace {

using Words = std::vector<std::string>;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Runs `stagecraft train` in this process. Errors: std::runtime_error with its message.
Trained train(const Words& options) {
  std::istringstream in;
  std::ostringstream out, err;
  tools::Console console{.in = in, .out = out, .err = err};
  const tools::ExitCode code =
      tools::run_runtime_command(joined({"train", "--json", "--steps", "2"}, options), console);
  if (code != tools::ExitCode::Good) {
    throw std::runtime_error(err.str());
  }
  return read_trained(out.str());
}

/// Runs it as a program.
Trained train_by(const Words& program, const Words& options) {
  const tests::CommandResult result =
      tests::run_command(joined(joined(program, {"train", "--json", "--steps", "2"}), options));
  if (result.exit_code != 0) {
    throw std::runtime_error(result.err);
  }
  Trained trained = read_trained(result.out);
  trained.used_nccl = (result.out + result.err).find("NCCL version") != std::string::npos;
  return trained;
}

/// Compares; what throws is a problem too.
template <class Compare>
Equality equality(std::string name, Compare&& compare) {
  Equality found{.name = std::move(name), .problem = ""};
  try {
    found.problem = compare();
  } catch (const std::exception& error) {
    found.problem = error.what();
  }
  return found;
}

/// Returns whether ranks hold two copies of each weight, whose gradients are added up in the end.
bool has_copies(const BuilderInfo& builder, int ranks) {
  BuildRequest request{.devices = ranks, .microbatches = 2 * ranks};
  if (builder.takes_graph) {
    request.graph = StageGraph::chain(ranks);
  }
  return Layout::of(build_schedule(builder.name, request)).replicas() > 1;
}

/// Options of llama and moe: enough layers for the stages of every builder on 4 ranks.
const Words kSmall{"--layers",
                   "16",
                   "--dim",
                   "32",
                   "--heads",
                   "2",
                   "--ffn",
                   "64",
                   "--seq",
                   "16",
                   "--microbatch-size",
                   "2"};

const Words kFewLayers{"--layers", "2", "--dim", "32", "--seq", "16", "--microbatches", "4"};

}  // namespace

Trained read_trained(const std::string& printed) {
  Trained trained;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json event = nlohmann::json::parse(line);
    if (event.at("event") == "step") {
      trained.losses.push_back(event.at("loss"));
    } else if (event.at("event") == "done") {
      trained.weights = event.at("weights_sha256");
    }
  }
  if (trained.weights.empty()) {
    throw std::runtime_error("the run has no end: " + printed);
  }
  return trained;
}

std::string different_losses(const Trained& a, const Trained& b, double part) {
  if (a.losses.size() != b.losses.size() || a.losses.empty()) {
    return fmt::format("{} losses, and {} of one rank", a.losses.size(), b.losses.size());
  }
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    if (!(std::abs(a.losses[i] - b.losses[i]) <= part * std::abs(b.losses[i]))) {
      return fmt::format(
          "the loss of step {} is {}, and {} of one rank", i + 1, a.losses[i], b.losses[i]);
    }
  }
  return "";
}

std::string different_bits(const Trained& a, const Trained& b) {
  const std::string losses = different_losses(a, b, 0.0);
  return losses.empty() && a.weights != b.weights ? "the weights have other bits than those of one "
                                                    "rank"
                                                  : losses;
}

std::vector<Equality> equalities(const std::string& device, Extent extent) {
  const Words here{"--device", device};
  std::vector<Equality> found;
  const Words models =
      extent == Extent::Some ? Words{"moe"} : Words{"llama", "moe", "vit", "unet", "clip"};
  for (const std::string& model : models) {
    for (const std::string precision : {"fp32", "bf16", "fp16"}) {
      const Words options = joined(joined(here, extent == Extent::Some ? kFewLayers : Words()),
                                   {"--model", model, "--precision", precision});
      found.push_back(equality(fmt::format("{} in {}, 1f1b on 2 ranks", model, precision), [&] {
        return different_bits(train(joined(options, {"--ranks", "2"})),
                              train(joined(options, {"--ranks", "1"})));
      }));
    }
  }
  const Words options = joined(here, kSmall);
  std::optional<Trained> alone;
  for (const BuilderInfo& builder : builders()) {
    if (extent == Extent::Some && builder.name != "zb-v" && builder.name != "chimera") {
      continue;
    }
    for (const int ranks : {2, 4}) {
      found.push_back(equality(fmt::format("{} on {} ranks", builder.name, ranks), [&] {
        if (!alone) {
          alone = train(joined(options, {"--ranks", "1"}));
        }
        const Trained pipeline = train(joined(
            options, {"--schedule", std::string(builder.name), "--ranks", std::to_string(ranks)}));
        return has_copies(builder, ranks) ? different_losses(pipeline, *alone, kCopiesDiffer)
                                          : different_bits(pipeline, *alone);
      }));
    }
  }
  return found;
}

std::vector<Equality> equalities_between_devices(const std::string& kind,
                                                 const std::string& program) {
  const Words options = joined(kSmall, {"--device", kind});
  const auto compare = [&](const std::string& name, const auto& run) {
    return equality(name, [&] {
      const Trained alone = train(joined(kSmall, {"--device", kind + ":0", "--ranks", "1"}));
      return different_losses(run(), alone, kCopiesDiffer);
    });
  };
  const Words copies{"--ranks", "2", "--dp", "2"};
  const Words processes{"--workers", "processes"};
  return {
      compare("1f1b on two devices, threads",
              [&] {
                return train(joined(options, {"--ranks", "2"}));
              }),
      compare("1f1b on two devices, processes",
              [&] {
                return train_by({program}, joined(joined(options, {"--ranks", "2"}), processes));
              }),
      compare("two copies on two devices, processes",
              [&] { return train_by({program}, joined(joined(options, copies), processes)); }),
  };
}

std::vector<Equality> equalities_by_nccl(const std::string& device, const std::string& program) {
  // NCCL takes this variable for the name of the host, and refuses two ranks on a GPU of one host.
  const tests::TemporaryFolder folder;
  std::string places;
  for (const std::string name : {"one", "two", "three", "four"}) {
    places += fmt::format("{0} addr=127.0.0.1 NCCL_HOSTID={0} NCCL_DEBUG=VERSION\n", name);
  }
  const std::string hosts = folder.write("hosts", places);
  const std::string ssh = folder.write("ssh", R"(#!/bin/sh
# Runs the command of "ssh [options] host command" here.
while [ "${1#-}" != "$1" ]; do [ "$1" != -o ] || shift; shift; done
shift
eval "$*"
)");
  std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
  const Words launch{program, "launch", "--hosts", hosts, "--ssh", ssh, "--"};
  const auto compare = [&](const std::string& name, const Words& by_nccl, const Words& layout) {
    return equality(name, [&] {
      const Words options = joined(joined(kSmall, {"--device", device}), layout);
      const Trained run = train_by(launch, joined(options, by_nccl));
      return run.used_nccl ? different_bits(run, train_by({program}, options))
                           : "the ranks did without NCCL";
    });
  };
  return {
      compare("NCCL: 1f1b", {}, {"--ranks", "2"}),
      compare("NCCL: zb-v", {}, {"--ranks", "2", "--schedule", "zb-v"}),
      compare("NCCL: two copies", {}, {"--ranks", "2", "--dp", "2"}),
      compare("NCCL: two copies of two stages", {}, {"--ranks", "4", "--dp", "2"}),
      // A sum of two numbers has the same bits in any order.
      compare("NCCL: two copies, added by it", {"--reduce", "nccl"}, {"--ranks", "2", "--dp", "2"}),
  };
}

}  // namespace stagecraft::gpu
