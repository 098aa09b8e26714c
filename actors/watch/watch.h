/// Watch shows a training run to those who have its link, while it runs: a page, JSON, metrics for
/// Prometheus, and what they may ask of the run. docs/watch.md describes it.
///
///   sc::Watch watch({.model = "mine", .steps = 1000, .ranks = {{"0"}, {"1"}}});
///   std::cerr << "watch: " << watch.link() << '\n';
///   while (trainer.steps() < 1000 && !watch.wants_end()) {
///     sc::StepResult step = watch.wait(trainer.step(inputs, labels), trainer);
///     watch.step(step, 64);
///   }
///
/// `stagecraft train --serve` and programs use it. Thread: one at a time, that of the trainer; its
/// server has threads of its own, which never touch the trainer. While a step is late, another one
/// asks it who waits for whom (Trainer::waits).
/// WO-1: nobody who watches delays a step by more than a copy of the state in memory (VB-1). Only
///       a late step's result, while somebody looks, waits for the answer to a question to the
///       ranks' agents that was asked before it came: 2 s at most, if a rank is silent.
/// WO-2: only those with the token get anything (watch_access.h), within bounds (http_server.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/actors/trainer/steps/step_future.h"
#include "stagecraft/actors/watch/watched_state.h"
#include "stagecraft/scheduler/measured/measured_step.h"

namespace stagecraft {

class Trainer;

class Watch {
 public:
  /// Serves at `place`: "127.0.0.1:8080"; port 0: any that is free. An address that other hosts
  /// reach, such as "0.0.0.0:8080", is served over TLS alone, with a certificate made for this run.
  /// Errors: UsageArgument for a text that is no place, or an address that cannot be listened on.
  explicit Watch(WatchedRun run, const std::string& place = "127.0.0.1:0");
  /// Ends the run for those who watch, if end() did not.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Returns "http://127.0.0.1:PORT/?token=...", with TLS
  /// "https://HOST:PORT/?token=...#sha256=...". Anyone with the link can watch the run and end it.
  [[nodiscard]] std::string link() const;
  /// Returns the SHA-256 of the certificate, "AB:CD:...", to be compared with the one that a
  /// browser shows; empty without TLS.
  [[nodiscard]] std::string fingerprint() const;

  /// Tells that the run continues another, after so many updates. Call it before the first step.
  void begin_after(std::int64_t step);

  /// Waits for a step of the trainer and returns its result. While the step is late and somebody
  /// looks, shows who waits for whom (Trainer::waits). Errors: those of StepFuture::get.
  [[nodiscard]] StepResult wait(const StepFuture& step, Trainer& trainer);

  /// Shows an update. `counted`: its samples or tokens (WatchedRun::counted). `timeline`: when the
  /// tasks of each row ran; may be null.
  void step(const StepResult& result,
            std::int64_t counted,
            std::shared_ptr<const MeasuredStep> timeline = nullptr);

  /// Tells how tensors get from rank to rank (Trainer::status), so that their bytes are counted by
  /// route.
  void set_routes(std::vector<std::vector<Route>> routes);

  /// Replaces WatchedRank::place, by rank.
  void set_places(const std::vector<std::string>& places);

  /// Adds to what losses of workers have cost the run so far.
  void healed(const WatchedHealing& more);

  void saved(std::int64_t step, const std::string& path);
  void message(const std::string& text);

  /// Returns, once for each request, whether a watcher wants a checkpoint now.
  [[nodiscard]] bool wants_checkpoint();
  /// Returns whether a watcher wants the run to end after this step.
  [[nodiscard]] bool wants_end() const;
  /// Returns whether a watcher wants the run to pause; if so, after waiting for another wish for at
  /// most `limit`. Call it again while it does.
  [[nodiscard]] bool wants_pause(std::chrono::milliseconds limit);

  /// Refuses all wishes from now on, with the reason. Call it after the last step, before what
  /// follows the steps.
  void take_no_wishes();

  /// Shows the run as ended. Its last state can be read until this object ends. Only the first call
  /// counts.
  void end(const std::string& how);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
