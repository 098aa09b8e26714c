/// Holds programs that end while a part of Stagecraft still runs: ends SCENARIO. Each must end with
/// the status that its main() returned, after its own exit handlers, at any state of the ranks.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <thread>

#include <torch/torch.h>

#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"

namespace stagecraft::tests {
namespace {

constexpr int kStatus = 7;  // no other way to end gives it

Trainer make_trainer(Cluster& cluster, const TrainerOptions& options = {}) {
  const Program program = make_program();
  return {cluster, program, make_schedule("1f1b", program), AdamW{.lr = 1e-2}, options};
}

Cluster static_cluster = Cluster::local(2);  // NOLINT: the scenario is about it

/// Is a stage whose forward and backward take long: one instruction of thousands of operators.
struct Long : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(64, 64))};
  torch::Tensor forward(torch::Tensor x) {
    return stage("long", [&] {
      for (int i = 0; i < 4'000; ++i) {
        x = torch::tanh(a(x));
      }
      return x;
    });
  }
};

int leaked() {
  auto* const trainer = new Trainer(make_trainer(static_cluster));
  (void)step_of(*trainer, 0).get();
  return kStatus;
}

int leaked_busy() {
  auto* const trainer = new Trainer(make_trainer(static_cluster, {.outstanding = 8}));
  (void)step_of(*trainer, 0).get();
  for (int i = 1; i < 8; ++i) {
    (void)step_of(*trainer, i);
  }
  std::exit(kStatus);
}

/// The rank that was left behind wakes after main() has returned.
int left_behind() {
  const auto failing = std::make_shared<FailingRank>();
  {
    Trainer trainer = make_trainer(
        static_cluster,
        {.end_deadline = std::chrono::milliseconds(50), .before_instruction = hook_of(failing)});
    failing->stop_at(first(trainer.plan(), Rank(1), Op::Run));
    (void)step_of(trainer, 0);
    failing->wait_until_stopped();
  }
  failing->let_go();
  return kStatus;
}

int static_trainer() {
  static Trainer trainer = make_trainer(static_cluster);
  (void)step_of(trainer, 0).get();
  return kStatus;
}

int static_trainer_without_steps() {
  static Trainer trainer = make_trainer(static_cluster);
  return trainer.steps() == 0 ? kStatus : 1;
}

int static_trainer_busy() {
  static Trainer trainer = make_trainer(static_cluster, {.outstanding = 8});
  for (int i = 0; i < 8; ++i) {
    (void)step_of(trainer, i);
  }
  return kStatus;
}

int inside_a_long_instruction() {
  static Long model;
  const auto x = torch::ones({8, 64});
  const auto program =
      compile(model,
              {.inputs = {x},
               .labels = {x},
               .loss = [](torch::Tensor o, torch::Tensor y) { return (o - y).pow(2).mean(); },
               .microbatches = 1});
  const auto failing = std::make_shared<FailingRank>();
  auto* const trainer = new Trainer(static_cluster,
                                    program,
                                    gpipe(program.stage_graph(), 1),
                                    Sgd{},
                                    {.before_instruction = hook_of(failing)});
  failing->stop_at(first(trainer->plan(), Rank(0), Op::Run));
  (void)trainer->step({x}, {x});
  failing->wait_until_stopped();
  failing->let_go();  // and into the forward
  return kStatus;
}

int exit_on_a_rank() {
  auto* const trainer = new Trainer(
      make_trainer(static_cluster, {.before_instruction = [](Rank rank, const Instruction& i) {
                     if (rank == Rank(1) && i.op == Op::Vote) {
                       std::exit(kStatus);
                     }
                   }}));
  (void)step_of(*trainer, 0).wait_until(std::chrono::steady_clock::now() + std::chrono::minutes(5));
  return 1;  // never reached: the process ends above
}

/// Another thread ends the process while this one calls a static trainer again and again, and waits
/// for the results. The batch is made before: this thread's own operators would run while LibTorch
/// is being destroyed.
int exit_elsewhere(void (*ask)(Trainer&, const Data&)) {
  static Trainer trainer = make_trainer(static_cluster, {.outstanding = 2});
  const Data batch = data(0);
  std::atomic<int> asked = 0;
  std::thread([&] {
    while (asked.load() < 5) {
      std::this_thread::yield();
    }
    std::exit(kStatus);
  }).detach();
  for (;;) {
    ask(trainer, batch);
    ++asked;
  }
}

int exit_elsewhere_in_steps() {
  return exit_elsewhere([](Trainer& trainer, const Data& batch) {
    (void)trainer.step(batch.inputs, batch.labels).get();
  });
}

int exit_elsewhere_in_unread_steps() {
  return exit_elsewhere(
      [](Trainer& trainer, const Data& batch) { (void)trainer.step(batch.inputs, batch.labels); });
}

int exit_elsewhere_in_evaluations() {
  return exit_elsewhere([](Trainer& trainer, const Data& batch) {
    (void)trainer.evaluate(batch.inputs, batch.labels);
  });
}

int exit_elsewhere_in_reads() {
  return exit_elsewhere([](Trainer& trainer, const Data&) { (void)trainer.state_dict(); });
}

/// Children of a process that compiled have their own trainers, and end them as they like.
int trained_in_children(bool parent_trains) {
  const Program program = make_program({.stages = 4});
  const auto new_trainer = [&] {
    return new Trainer(
        Cluster::local(4), program, make_schedule("1f1b", program), AdamW{.lr = 1e-2});
  };
  const auto trains = [](Trainer& trainer) { return step_of(trainer, 0).get().step == 1; };
  if (parent_trains && !trains(*new_trainer())) {
    return 1;
  }
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Trainer* const trainer = new_trainer();
      const bool good = trains(*trainer);
      (void)step_of(*trainer, 1);  // its ranks are working when the child ends
      std::exit(good ? kStatus : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kStatus) {
      return 1;
    }
  }
  return kStatus;
}

int trained_in_children_alone() {
  return trained_in_children(false);
}

int trained_in_children_too() {
  return trained_in_children(true);
}

bool refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == Errc::UsageArgument &&
           std::string(error.what()).find("fork()") != std::string::npos;
  }
  return false;
}

/// A child of fork() has the trainer and none of its threads.
int forked() {
  Trainer trainer = make_trainer(static_cluster);
  const StepFuture read = step_of(trainer, 0);
  (void)read.get();
  const StepFuture unread = step_of(trainer, 1);
  const pid_t child = fork();
  if (child == 0) {
    const bool all =
        refused([&] { (void)step_of(trainer, 2); }) &&
        refused([&] { (void)trainer.evaluate(data(0).inputs, data(0).labels); }) &&
        refused([&] { (void)trainer.steps(); }) && refused([&] { (void)trainer.state_dict(); }) &&
        refused([&] { (void)trainer.checkpoint(); }) &&
        refused([&] { trainer.save("/dev/null/none"); }) &&
        refused([&] { trainer.load("/dev/null/none"); }) &&
        refused([&] { (void)trainer.status(); }) && refused([&] { (void)unread.get(); }) &&
        refused([&] { (void)unread.ready(); }) && refused([&] { (void)read.get(); });
    return all ? kStatus : 1;  // and the trainer is destroyed on the way out
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool child_good = WIFEXITED(status) && WEXITSTATUS(status) == kStatus;
  return child_good && unread.get().step == 2 && step_of(trainer, 2).get().step == 3 ? kStatus : 1;
}

const std::map<std::string, int (*)()>& scenarios() {
  static const std::map<std::string, int (*)()> all{
      {"leaked", leaked},
      {"leaked-busy", leaked_busy},
      {"left-behind", left_behind},
      {"static-trainer", static_trainer},
      {"static-trainer-without-steps", static_trainer_without_steps},
      {"static-trainer-busy", static_trainer_busy},
      {"inside-a-long-instruction", inside_a_long_instruction},
      {"exit-on-a-rank", exit_on_a_rank},
      {"exit-elsewhere-in-steps", exit_elsewhere_in_steps},
      {"exit-elsewhere-in-unread-steps", exit_elsewhere_in_unread_steps},
      {"exit-elsewhere-in-evaluations", exit_elsewhere_in_evaluations},
      {"exit-elsewhere-in-reads", exit_elsewhere_in_reads},
      {"forked", forked},
      {"trained-in-children-alone", trained_in_children_alone},
      {"trained-in-children-too", trained_in_children_too},
  };
  return all;
}

}  // namespace
}  // namespace stagecraft::tests

int main(int argc, char** argv) {
  const auto& all = stagecraft::tests::scenarios();
  const auto found = all.find(argc > 1 ? argv[1] : "");
  if (found == all.end()) {
    return 2;
  }
  std::atexit([] { std::cout << "handler ran\n" << std::flush; });
  return found->second();
}
