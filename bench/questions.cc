#include "stagecraft/bench/questions.h"

#include <array>

namespace stagecraft::bench {

// clang-format off
namespace actor_calls { int run(int argc, char** argv); }
namespace branches { int run(int argc, char** argv); }
namespace capture { int run(int argc, char** argv); }
namespace cluster_join { int run(int argc, char** argv); }
namespace collectives { int run(int argc, char** argv); }
namespace control_plane { int run(int argc, char** argv); }
namespace dispatch { int run(int argc, char** argv); }
namespace driver_code { int run(int argc, char** argv); }
namespace driver_scale { int run(int argc, char** argv); }
namespace models { int run(int argc, char** argv); }
namespace plan_memory { int run(int argc, char** argv); }
namespace planners { int run(int argc, char** argv); }
namespace plans { int run(int argc, char** argv); }
namespace profile_sum { int run(int argc, char** argv); }
namespace replay { int run(int argc, char** argv); }
namespace step_overhead { int run(int argc, char** argv); }
namespace strategies { int run(int argc, char** argv); }
namespace timeline_cost { int run(int argc, char** argv); }
namespace train_llama { int run(int argc, char** argv); }
namespace transports { int run(int argc, char** argv); }
namespace validate_cells { int run(int argc, char** argv); }
// clang-format on

namespace {

constexpr std::array kQuestions{
    Question{"step_overhead", "what does the runtime itself cost?", step_overhead::run},
    Question{"train_llama", "what takes the time of a training step?", train_llama::run},
    Question{"replay", "how long does a captured stage take beside its module?", replay::run},
    Question{"capture", "what does it cost to load a model?", capture::run},
    Question{"dispatch", "what does it cost to dispatch task by task?", dispatch::run},
    Question{"driver_code", "what does code on the driver cost?", driver_code::run},
    Question{"timeline_cost", "what does it cost to record a step?", timeline_cost::run},
    Question{"models", "do measurements predict how long steps take?", models::run},
    Question{"profile_sum", "does a profile predict the time of a step?", profile_sum::run},
    Question{"plan_memory", "do ranks hold what is predicted?", plan_memory::run},
    Question{"plans", "does planning pay?", plans::run},
    Question{"strategies", "what does a strategy cost?", strategies::run},
    Question{"planners", "how long do planners search?", planners::run},
    Question{"branches", "what does it gain to keep branches parallel?", branches::run},
    Question{"validate_cells", "what does it cost to check a cell?", validate_cells::run},
    Question{"driver_scale", "what does the driver cost per worker?", driver_scale::run},
    Question{"cluster_join", "how long does a large cluster take to form?", cluster_join::run},
    Question{"control_plane", "what do messages between processes cost?", control_plane::run},
    Question{"actor_calls", "what does a call of a remote actor cost?", actor_calls::run},
    Question{"transports", "how fast do tensors get to another process?", transports::run},
    Question{"collectives", "how fast are sums over processes?", collectives::run},
};

}  // namespace

std::span<const Question> questions() {
  return kQuestions;
}

}  // namespace stagecraft::bench
