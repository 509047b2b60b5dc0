/** Every step of the kit does what is asked of every step. */
import { batteryOf } from '../support/battery.ts';

await batteryOf(2);
