#include "stagecraft/bench/planned_model.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include <ATen/ops/randint.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tools/train/job.h"
#include "stagecraft/tools/train/models.h"
#include "stagecraft/tools/train/work.h"

namespace stagecraft::bench {

PlannedModel train_model(const std::string& model,
                         int microbatches,
                         int samples,
                         const std::vector<std::string>& sizes) {
  std::vector<std::string> words{"--model",
                                 model,
                                 "--microbatches",
                                 std::to_string(microbatches),
                                 "--microbatch-size",
                                 std::to_string(samples)};
  words.insert(words.end(), sizes.begin(), sizes.end());
  const auto options = std::get<tools::TrainOptions>(tools::parse_train_options(words));
  const std::shared_ptr<tools::Work> work = tools::open_work(options, 1e18);
  const auto choice_of = [=](const std::optional<Cut>& cut, int stages) {
    const Schedule schedule = one_f_one_b(stages, microbatches);
    return tools::ScheduleChoice{.schedule = schedule,
                                 .layout = Layout::of(schedule),
                                 .stages = stages,
                                 .microbatches = microbatches,
                                 .given = {},
                                 .cut = cut};
  };
  const tools::WorkBatch batch = work->batch(0, choice_of({}, 1));
  return {.name = model,
          .compile = [=](const std::optional<Cut>& cut,
                         int stages) { return work->compile(choice_of(cut, stages)); },
          .inputs = batch.inputs,
          .labels = batch.labels,
          .microbatches = microbatches};
}

PlannedModel large_vocabulary(int microbatches, int samples) {
  constexpr std::int64_t kVocabulary = 8192, kSequence = 64;
  const examples::LlamaOptions sizes{.vocabulary = kVocabulary,
                                     .layers = 4,
                                     .dim = 128,
                                     .heads = 4,
                                     .ffn = 344,
                                     .sequence = kSequence,
                                     .stages = 1,
                                     .seed = 0};
  const at::Tensor tokens =
      at::randint(kVocabulary, {microbatches * samples, kSequence + 1}, at::kLong);
  const at::Tensor inputs = tokens.narrow(1, 0, kSequence).contiguous();
  const at::Tensor labels = tokens.narrow(1, 1, kSequence).contiguous();
  return {.name = "llama, 8192 words",
          .compile =
              [=](const std::optional<Cut>& cut, int stages) {
                examples::LlamaOptions of = sizes;
                of.stages = cut ? 1 : stages;
                examples::Llama model(of);
                return compile(model,
                               {.inputs = {inputs},
                                .labels = {labels},
                                .loss = examples::next_token_loss,
                                .microbatches = microbatches,
                                .cut = cut.value_or(AtMarkers{})});
              },
          .inputs = {inputs},
          .labels = {labels},
          .microbatches = microbatches};
}

PlanProposal judged(const PlanRequest& request, const Program& program, const Schedule& schedule) {
  const WorkGraph graph = WorkGraph::of(request.costs, request.costs.samples);
  Candidate candidate{
      .planner = "given",
      .stages = StageOperators(static_cast<std::size_t>(program.stage_graph().size())),
      .microbatch_size = request.costs.samples,
      .schedule = schedule,
      .schedule_name = "given"};
  for (int op = 0; op < graph.size(); ++op) {
    const auto node = static_cast<std::size_t>(graph.ids(op).front());
    const int stage = program.compiled().assignment.stage_of[node];
    candidate.stages[static_cast<std::size_t>(stage)].push_back(op);
  }
  return judge(request, candidate);
}

}  // namespace stagecraft::bench
