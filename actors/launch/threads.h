/// ThreadLauncher: ranks that are threads of this process, with the in-process network between
/// them.
#pragma once

#include "stagecraft/actors/launch/launcher.h"

namespace stagecraft {

class ThreadLauncher final : public Launcher {
 public:
  [[nodiscard]] std::unique_ptr<const Network> make_network(int ranks) const override;
  [[nodiscard]] Worker launch(const Network& network, RankSetup setup) const override;
};

}  // namespace stagecraft
