/// master_weights updates parameters of half types through masters, their copies in float32, so
/// that changes smaller than half of a parameter's last digit add up (Micikevicius et al., "Mixed
/// precision training", ICLR 2018, section 3.1).
///
///     gradient --widened--> optimizer in float32 --> master --rounded--> parameter
///
/// A bucket keeps the masters (OptimizedParameter::master) like state of the optimizer, and updates
/// through them on its thread.
/// MWT-1: a master changes as a parameter of float32 with the widened gradient does, bit by bit:
///        also the mean, clipping and the optimizer's state are in float32.
/// MWT-2: a parameter with a master is the master, rounded (float16: infinite beyond 65504).
/// MWT-3: beside the masters, an update holds a few megabytes in float32, and one whole parameter
///        more if its optimizer is the user's.
#pragma once

#include <functional>
#include <vector>

#include "stagecraft/actors/executor/optimizer/group_updates.h"
#include "stagecraft/actors/executor/optimizer/update_pass.h"
#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft {

/// Checks that masters can have a use; frozen parameters count as others. Errors: UsageArgument if
/// no parameter that requires gradients is of a half type.
void check_master_weights(const std::vector<NamedTensor>& parameters);

/// Makes one update of these parameters, whose tensors are all of one type each.
using UpdateOf = std::function<void(std::vector<OptimizedParameter>&)>;

/// Calls `update` for all parameters, once or several times. In place of a parameter with a master
/// it gets the master, with the gradient widened, in flat parts unless `whole`; parameter and
/// gradient are then the results, rounded. One that is frozen in the update comes without its
/// master.
void update_through_masters(std::vector<OptimizedParameter>& parameters,
                            const UpdateNumbers& numbers,
                            bool whole,
                            const UpdateOf& update);

}  // namespace stagecraft
