#include <memory>
#include <vector>

#include "stagecraft/tests/simulate/network.h"
#include "stagecraft/tests/simulate/seam/link_forms.h"

namespace stagecraft::simulation {
namespace {

/// The process that is there now.
struct SimulatedProcess {
  ProcessNumber number = 0;
  std::vector<caf::actor> actors;
};

constexpr LinkForm kForms[] = {{"over TLS", 1, over_tls}, {"simulated", 50, simulated}};

}  // namespace

std::span<const LinkForm> link_forms() {
  return kForms;
}

void simulated(int time, const std::function<void(LinkUnderTest&)>& run) {
  World world(static_cast<std::uint64_t>(time));
  const auto network = std::make_shared<Network>(world);
  const auto there = std::make_shared<SimulatedProcess>();
  LinkUnderTest link{.here = world.host().system()};
  link.start = [&world, network, there](const caf::actor& listener, Notes&) {
    *there = {.number = there->number + 1, .actors = {}};
    network->begin(there->number);
    const auto made = [&world, there](const caf::actor& actor) {
      world.own(actor.id(), there->number);
      there->actors.push_back(actor);
    };
    const auto handle = [&](const caf::actor& actor, ProcessNumber lives, ProcessNumber known) {
      return caf::actor_cast<caf::actor>(
          network->handle(caf::actor_cast<caf::strong_actor_ptr>(actor), lives, known));
    };
    const caf::actor begun = world.host().system().spawn(
        root, handle(listener, 0, there->number), std::function<void(const caf::actor&)>(made));
    made(begun);
    return handle(begun, there->number, 0);
  };
  link.kill = [network, there] {
    network->end(there->number);
    for (const caf::actor& actor : there->actors) {
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    }
  };
  const auto end = [&] {
    if (!network->has_ended(there->number)) {
      link.kill();
    }
  };
  world.run([&] {
    try {
      run(link);
    } catch (...) {
      end();  // or the simulation would go on
      throw;
    }
    end();
  });
}

}  // namespace stagecraft::simulation
