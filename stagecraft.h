/// What an embedding program includes: compile a module, choose or write a schedule, train.
#pragma once

#include "stagecraft/actors/check.h"
#include "stagecraft/actors/cluster.h"
#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/actors/step_future.h"
#include "stagecraft/actors/trainer.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/markers.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/layout.h"
#include "stagecraft/scheduler/registry.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/simulate.h"
#include "stagecraft/scheduler/validate.h"
