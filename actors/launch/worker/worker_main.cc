#include "stagecraft/actors/launch/worker/worker_main.h"

#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/actors/launch/worker/worker_process.h"
#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

bool is_worker(int argc, const char* const* argv) {
  return argc > 1 && std::string_view(argv[1]) == kWorkerWord;
}

int worker_main(int argc, const char* const* argv, std::shared_ptr<const ActorTypes> types) {
  try {
    return run_worker_process(parse_worker_arguments({argv + 2, argv + argc}), std::move(types));
  } catch (const Error& error) {
    std::cerr << "worker: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace stagecraft
