#include "stagecraft/tools/train/run/run_watch.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/tools/common/interrupt.h"
#include "stagecraft/tools/train/run/rank_sums.h"

namespace stagecraft::tools {
namespace {

class WatchedProgress : public Progress {
 public:
  WatchedProgress(std::unique_ptr<Progress> form, Watch& watch)
      : form_(std::move(form)), watch_(watch) {}

  void step(const StepLine& line) override { form_->step(line); }
  void evaluated(const EvalLine& line) override {
    watch_.message(fmt::format("evaluation: loss {:.6g}", line.loss));
    form_->evaluated(line);
  }
  void saved(std::int64_t step, const std::string& path) override {
    watch_.saved(step, path);
    form_->saved(step, path);
  }
  void saved_weights(std::int64_t step, const std::string& path) override {
    watch_.message("weights written to " + path);
    form_->saved_weights(step, path);
  }
  void interrupted(std::int64_t step, int signal) override {
    watch_.message(fmt::format("{} ends the run", signal_name(signal)));
    form_->interrupted(step, signal);
  }
  void verified(const VerifyLine& line) override { form_->verified(line); }
  void done(const DoneLine& line) override { form_->done(line); }
  void report(const std::string& text, const nlohmann::ordered_json& event) override {
    form_->report(text, event);
  }
  void note(const std::string& text, const nlohmann::ordered_json& event) override {
    if (event.value("event", "") != "watch") {  // those who watch have the link
      watch_.message(text.substr(0, text.find_last_not_of('\n') + 1));
    }
    form_->note(text, event);
  }
  void text(const std::string& text) override { form_->text(text); }

 private:
  const std::unique_ptr<Progress> form_;
  Watch& watch_;
};

std::string worker_text(const WorkerPlace& place, WorkerKind kind) {
  if (kind == WorkerKind::Threads) {
    return "thread";
  }
  const std::string process =
      place.process == 0 ? "process" : fmt::format("process {}", place.process);
  return place.host.empty() ? process : fmt::format("{}, {}", place.host, process);
}

WatchedRun watched_run(const TrainJob& job) {
  const TrainOptions& o = job.options;
  WatchedRun run{.model = o.model.file.value_or(o.model.name),
                 .schedule = job.planned           ? job.planned->best().candidate.schedule_name
                             : o.pipeline.strategy ? *o.pipeline.strategy
                                                   : o.pipeline.schedule,
                 .steps = job.choice.steps,
                 .counted = job.work->tokens(job.choice.shape) ? "tokens" : "samples",
                 .takes_checkpoints = o.keeping.save_dir.has_value()};
  const Layout& layout = job.choice.layout;
  const std::vector<std::string> stages = RankSums(layout).stages();
  for (std::size_t r = 0; r < stages.size(); ++r) {
    run.ranks.push_back(
        {.stages = stages[r], .billed_bytes = r < job.ranks.size() ? job.ranks[r].sum() : 0});
  }
  for (int row = 0; row < layout.rows(); ++row) {
    std::vector<int>& ranks = run.ranks_of_rows.emplace_back();
    for (const Rank rank : layout.ranks_of(row)) {
      ranks.push_back(rank.value);
    }
  }
  return run;
}

}  // namespace

std::unique_ptr<Watch> make_run_watch(const TrainJob& job) {
  return job.options.run.serve ? std::make_unique<Watch>(watched_run(job), *job.options.run.serve)
                               : nullptr;
}

std::unique_ptr<Progress> make_watched_progress(std::unique_ptr<Progress> form, Watch& watch) {
  return std::make_unique<WatchedProgress>(std::move(form), watch);
}

std::vector<std::string> places_of(const TrainJob& job, const Cluster& cluster) {
  std::vector<std::string> places;
  for (const WorkerPlace& place : cluster.workers()) {
    places.push_back(worker_text(place, job.options.workers.kind));
  }
  return places;
}

std::vector<std::vector<Route>> routes_of(const std::vector<RankStatus>& ranks) {
  std::vector<std::vector<Route>> routes;
  for (const RankStatus& rank : ranks) {
    routes.push_back(rank.routes);
  }
  return routes;
}

}  // namespace stagecraft::tools
