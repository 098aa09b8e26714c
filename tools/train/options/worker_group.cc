#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/actors/executor/device/device_name.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/program_device.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/train/options/groups.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kWorkerGroup = "Workers (docs/cluster.md)";

// More than any machine has processors. Libraries that start threads fail at very large numbers.
constexpr std::int64_t kMostThreads = 1024;

void check_device(const WorkerOptions& o) {
  try {
    if (is_program_device(named_device(o.device)) || !o.memory_limit) {
      return;
    }
  } catch (const Error& error) {
    wrong_usage(kTrainCommand, in_words(error, {.options = {{"device", "--device"}}}).what());
  }
  wrong_usage(kTrainCommand,
              "--memory-limit expects --device cpu, found --device " + o.device +
                  "; leave one of the two out");
}

/// Returns what is between commas, empty parts too.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

void check_restarts(const WorkerOptions& o, const CLI::App& app) {
  if (o.restarts > 0 && o.kind == WorkerKind::Threads) {
    wrong_usage(kTrainCommand,
                "--restarts expects --workers processes or joining, found threads, which end with "
                "the command: name one of them, or leave --restarts out");
  }
  if (o.restarts > 0 && app.count("--step-by-step") > 0) {
    wrong_usage(kTrainCommand,
                "--restarts expects steps that run by themselves, found --step-by-step, which "
                "holds a step for as long as somebody looks at it: leave one of the two out");
  }
  for (const char* option : {"--mirror", "--restart-window", "--spares"}) {
    const bool is_mirrored = o.attach && std::string_view(option) == "--mirror";
    if (o.restarts == 0 && !is_mirrored && app.count(option) > 0) {
      wrong_usage(
          kTrainCommand,
          fmt::format("{} expects --restarts N, without which the loss of a worker ends the "
                      "run; found none",
                      option));
    }
  }
  if (!o.spares.empty() && o.kind == WorkerKind::Joining) {
    wrong_usage(kTrainCommand,
                "--spares expects workers that `stagecraft launch --hosts FILE` starts, found "
                "--workers joining, whose workers something else starts: let it start one on "
                "another host, which takes the place of a lost one; or leave --spares out");
  }
}

void check_attach(const WorkerOptions& o, const CLI::App& app) {
  if (!o.attach) {
    return;
  }
  if (o.kind != WorkerKind::Joining) {
    wrong_usage(kTrainCommand,
                "--attach expects --workers joining: workers that outlive the command are started "
                "by something else, with `stagecraft worker --outlive MS`");
  }
  if (app.count("--resume") == 0 && app.count("--run-dir") == 0) {
    wrong_usage(kTrainCommand,
                "--attach expects --run-dir DIR or --resume DIR, where the run is continued if no "
                "worker has outlived the earlier command, found none");
  }
  if (app.count("--verify") > 0) {
    wrong_usage(kTrainCommand,
                "--attach expects no --verify, whose one process begins at a checkpoint; leave one "
                "of the two out");
  }
  if (o.mirror == std::optional(false)) {
    wrong_usage(kTrainCommand,
                "--attach expects --mirror yes: what the workers hand on are the copies of "
                "mirrors; leave --mirror out");
  }
}

}  // namespace

void add_workers(CLI::App& app, WorkerOptions& o) {
  add_choice<WorkerKind>(app,
                         "--workers",
                         o.kind,
                         {{"threads", WorkerKind::Threads},
                          {"processes", WorkerKind::Processes},
                          {"joining", WorkerKind::Joining}},
                         "threads of this process, processes on this host, or workers that join "
                         "over the network; `stagecraft launch` sets it")
      ->envname("STAGECRAFT_WORKERS")
      ->group(kWorkerGroup);
  app.add_option("--device",
                 o.device,
                 "device of each rank: cpu, cuda (GPUs of its process, in turn) or cuda:N")
      ->type_name("DEVICE")
      ->group(kWorkerGroup);
  add_choice<DeviceTransport>(
      app,
      "--gpu-transport",
      o.device_transport,
      {{"nccl", DeviceTransport::Nccl}, {"host", DeviceTransport::Host}},
      "way of tensors between GPUs of different processes: NCCL where it can, or the host's memory")
      ->group(kWorkerGroup);
  add_choice<DeviceReduce>(
      app,
      "--reduce",
      o.device_reduce,
      {{"by-rank", DeviceReduce::ByRank}, {"nccl", DeviceReduce::Nccl}},
      "order of sums over GPUs: that of the ranks, equal on every run, or NCCL's own")
      ->group(kWorkerGroup);
  app.add_option("--threads-per-worker", o.threads, "threads per worker, inside one operator")
      ->check(whole_number(1, kMostThreads))
      ->group(kWorkerGroup);
  app.add_option("--memory-limit",
                 o.memory_limit,
                 "most memory that the steps of one rank may hold, in use and cached, e.g. 512M")
      ->type_name("BYTES")
      ->transform(byte_number())
      ->group(kWorkerGroup);
  app.add_flag("--read-on-workers",
               o.read_data,
               "let each worker read text, images or data itself, at the same path on every host")
      ->group(kWorkerGroup);
  add_choice<ProcessorChoice>(
      app,
      "--processor",
      o.processor,
      {{"own", ProcessorChoice::Own}, {"common", ProcessorChoice::Common}},
      "common: all processes use the widest instructions that all of them have, so that hosts of "
      "different kinds compute the same bits")
      ->envname("STAGECRAFT_PROCESSOR")
      ->group(kWorkerGroup);
  app.add_option("--restarts",
                 o.restarts,
                 "how often the run may replace lost workers and go on; 0: their loss ends it")
      ->check(whole_number(0))
      ->group(kWorkerGroup);
  app.add_option("--restart-window",
                 o.restart_window,
                 "seconds in which no more than 5 restarts may happen")
      ->type_name("SECONDS")
      ->check(positive_number())
      ->group(kWorkerGroup);
  add_choice<std::optional<bool>>(
      app,
      "--mirror",
      o.mirror,
      {{"yes", true}, {"no", false}},
      "with --restarts, keep a copy of each rank's state in the memory of the next "
      "[yes if memory suffices]")
      ->group(kWorkerGroup);
  app.add_flag("--attach",
               o.attach,
               "let workers that outlive this command (worker --outlive) hand the state on to the "
               "same command again, which goes on from there")
      ->group(kWorkerGroup);
  app.add_option_function<std::string>(
         "--spares",
         [&o](const std::string& text) { o.spares = parts_of(text); },
         "with --restarts, hosts that take the workers of a host that takes none any more")
      ->type_name("HOST,...")
      ->group(kWorkerGroup);
  app.add_option("--credentials",
                 o.credentials,
                 "folder of `stagecraft credentials make`, for worker processes [made for the run]")
      ->type_name("DIR")
      ->group(kWorkerGroup);
}

void check_workers(const WorkerOptions& o, const CLI::App& app) {
  check_device(o);
  check_restarts(o, app);
  check_attach(o, app);
  if (o.credentials && o.kind == WorkerKind::Threads) {
    wrong_usage(
        kTrainCommand,
        "--credentials expects --workers processes or joining, found threads; leave one of the two "
        "out");
  }
}

}  // namespace stagecraft::tools
